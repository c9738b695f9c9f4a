internal import BrokerCore
internal import RingbackAPI
internal import StrictJSON
internal import SupabaseAuth

/// A person who came by a link of a custom scheme sees neither a page nor a terminal: with `"notify": true` a
/// notification tells them what came of it, and the answer says whether somebody showed it.
extension SocketAPI {
    /// The answer to a callback of a flow.
    func answer(_ view: FlowView, after verdict: CallbackVerdict, isTold: Bool, _ call: Call) async -> JSON {
        var object = JSONObject([.init("flow", flow(view, call.language))])
        if case .outdated = verdict, case .object(var flow)? = object["flow"] {
            flow["user_message"] = .string(PersonMessage.olderLink.text(in: call.language.ofMessages))
            object["flow"] = .object(flow)
        }
        if isTold {
            let message = object["flow"]?["user_message"]?.string
            var verdict = verdict
            // Somebody who has confirmed a new address was signed in before.
            if case .completed(let id) = verdict, view.changesUser { verdict = .noted(flow: id) }
            object["notified"] = .bool(await daemon.tellOfCallback(verdict, view.account, message))
        }
        return .object(object)
    }

    /// Why a URL ended no sign-in.
    func problem(after verdict: CallbackVerdict, isTold: Bool, _ call: Call) async -> Problem {
        var problem: Problem
        if case .ignored(let reason) = verdict {
            problem = Problem(.invalidCallback(reason), language: call.language)
        } else {
            problem = Problem(.flowEnded, language: call.language)
        }
        if isTold { problem.extensions["notified"] = .bool(await daemon.tellOfCallback(verdict, nil, nil)) }
        return problem
    }
}
