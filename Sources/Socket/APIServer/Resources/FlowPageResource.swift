internal import BrokerCore
internal import LocalHTTP
internal import RingbackAPI
internal import RingbackBase

/// The page of a flow, which the daemon opens for an app that cannot start a browser.
struct FlowPageResource: Resource {
    let api: SocketAPI

    static let routes: [Route] = [
        Route(
            .openFlow, "Open the page of a pending flow in the account's browser",
            body: .members(
                .optional("activation_token", text: "XDG_ACTIVATION_TOKEN, by which the window comes to the front")),
            .json(.flow), errors: [.flowNotFound, .flowExpired, .stateConflict, .portInUse, .validationFailed],
            FlowPageResource.open)
    ]

    /// The browser gets an `open_url` of its own: all users of the machine can read its arguments.
    func open(_ call: Call) async throws(Problem) -> ServerResponse {
        let token = try call.text("activation_token")
        let pending = try await call.ask { () throws(BrokerError) in
            let flow = try await broker.flow(call["flow"])
            guard flow.status == .pending else { throw .flowEnded }
            return flow
        }
        guard let url = try await call.ask({ () throws(BrokerError) in try await broker.openURL(of: pending.id) })
        else { throw Problem(.stateConflict, "The sign-in has no page to open.") }
        if let reason = await daemon.openPage(url, pending.account, token) {
            throw Problem(
                .stateConflict, "No browser was started: \(reason).",
                extensions: ["account": pending.account.rawValue, "cause": ProblemCause.browserNotStarted.rawValue])
        }
        var flow = try await call.ask { () throws(BrokerError) in try await broker.flow(pending.id) }
        flow.openURL = url
        return ServerResponse(flow.json(in: call.language))
    }
}
