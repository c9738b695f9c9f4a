import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

/// Finds the flow that waits for a code, by its identifier or by its account's name.
enum FlowChoice {
    static func find(_ name: String, _ calls: BrokerCalls) throws(RingbackError) -> Flow {
        let list = try calls.flows()
        // An ended flow is found by its identifier, so that its own error is shown.
        if let flow = list.first(where: { $0.id == name }) {
            if let failure = flow.failure { throw failure }
            return flow
        }
        let flows = list.filter { $0.account == name && $0.status == .pending }
        if let flow = flows.first(where: CodeEntry.isAwaited) { return flow }
        let shown = Sanitizer.line(name)
        guard flows.isEmpty else {
            throw RingbackError(.stateConflict, "The pending sign-in of \(shown) does not wait for a code.")
        }
        guard let account = try? calls.account(name) else {
            throw RingbackError(.accountNotFound, "There is no account and no pending sign-in “\(shown)”.")
        }
        guard account["provider"]?.string == "supabase" else {
            throw RingbackError(
                .methodUnsupported,
                "The provider of \(shown) sends no codes for a sign-in. To sign in: \(shown: "ringback login \(shown)")"
            )
        }
        throw RingbackError(
            .flowNotFound,
            "No sign-in for \(shown) is waiting for a code. To begin one: "
                + "\(shown: "ringback login \(shown) --method otp --email ADDRESS")"
        )
    }
}
