internal import BrokerCore
internal import DeepLinks
internal import LocalHTTP
internal import RingbackAPI
internal import StrictJSON
internal import SupabaseAuth

struct FlowResource: Resource {
    let api: SocketAPI

    static let routes: [Route] = [
        Route(
            .listFlows, "Every flow that is remembered, oldest first", .json(.flows), FlowResource.listFlows),
        Route(
            .getFlow, "A flow, once it has left pending or the wait is over",
            query: [.optional("wait", .integer, "Seconds to wait, at most 600")], .json(.flow),
            errors: [.flowNotFound, .validationFailed], FlowResource.getFlow),
        Route(
            .cancelFlow, "Take back one sign-in call; the flow is cancelled when none is left",
            query: [.optional("all", .boolean, "Cancel for all callers; may be repeated")], .json(.flow),
            errors: [.flowNotFound, .validationFailed], FlowResource.cancelFlow),
        Route(
            .verifyFlow, "Redeem the code that a flow waits for, or an authenticator's response",
            body: .members([
                .optional("code", .string), .optional("token_hash", .string), .optional("email", .string),
                .optional("phone", .string), .optional("credential", .anyObject, Schema.credentialText),
                .optional("type", .words(["email_change", "phone_change"])),
            ]), .json(.flow), errors: .ofFlow, FlowResource.verifyFlow),
        Route(
            .resendFlow, "Send a flow's message again, not before its resend_after",
            body: .members([.optional("captcha_token", .string)]), .json(.flow), errors: .ofFlow,
            FlowResource.resendFlow),
    ]

    func listFlows(_ call: Call) async throws(Problem) -> ServerResponse {
        let views = await broker.flows()
        return ServerResponse(json: ["flows": .array(views.map { $0.json(in: call.language) })])
    }

    func getFlow(_ call: Call) async throws(Problem) -> ServerResponse {
        let wait = try call.duration("wait") ?? .zero
        let id = call.parameters["flow"] ?? ""
        let view = try await call.ask { () throws(BrokerError) in
            try await broker.flow(id, waiting: wait)
        }
        return ServerResponse(json: view.json(in: call.language))
    }

    func cancelFlow(_ call: Call) async throws(Problem) -> ServerResponse {
        let isForAll = try call.flag("all")
        let id = call.parameters["flow"] ?? ""
        let view = try await call.ask { () throws(BrokerError) in try await broker.cancel(id, isForAll: isForAll) }
        return ServerResponse(json: view.json(in: call.language))
    }

    /// A wrong code does not end the flow.
    func verifyFlow(_ call: Call) async throws(Problem) -> ServerResponse {
        let id = call.parameters["flow"] ?? ""
        if let credential = try call.object("credential") {
            return try await verify(id, credential: credential, call)
        }
        let (code, hash) = (try call.secret("code"), try call.secret("token_hash"))
        let origin = CodeOrigin(
            email: try call.text("email"), phone: try call.text("phone"), kind: try call.text("type"))
        let view = try await call.ask { () throws(BrokerError) in
            try await broker.verify(id, code: code, tokenHash: hash, origin: origin)
        }
        return ServerResponse(json: view.json(in: call.language))
    }

    func resendFlow(_ call: Call) async throws(Problem) -> ServerResponse {
        let id = call.parameters["flow"] ?? ""
        let captcha = try call.secret("captcha_token")
        let view = try await call.ask { () throws(BrokerError) in try await broker.resend(id, captcha: captcha) }
        return ServerResponse(json: view.json(in: call.language))
    }

    /// Redeems an authenticator's response, in place of a code.
    private func verify(_ id: String, credential: JSONObject, _ call: Call) async throws(Problem) -> ServerResponse {
        for other in ["code", "token_hash", "email", "phone", "type"] where call.has(other) {
            throw call.invalid(other, "it cannot be combined with credential")
        }
        let view = try await call.ask { () throws(BrokerError) in try await broker.verify(id, credential: credential) }
        return ServerResponse(json: view.json(in: call.language))
    }
}

extension Component {
    static let flows = Component("Flows", [.required("flows", .array(.component(.flow)))])
}
