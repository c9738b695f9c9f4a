internal import HTTPMessages
internal import LocalHTTP
internal import StrictJSON

/// What a test reads in the user's place, and the form of faults at a project.
extension SandboxProvider {
    /// `GET mailbox` and `GET messages`: what was sent by mail, and by phone, in order. `to` and `type` select some.
    func sentMessages(_ request: SandboxRequest, isMail: Bool) -> ServerResponse {
        let wanted = Parameters(request.query)
        let sentMessages = withState { state in
            state.supabase.codes.mail.messages.filter { message in
                (message.channel == "email") == isMail && (wanted["to"] ?? message.to) == message.to
                    && (wanted["type"] ?? message.type) == message.type
            }
        }
        return Responses.json(["letters": .array(sentMessages.map(\.json))])
    }
}

extension Fault {
    /// An error in the form that the request asked for, or with the given `body`; nil for any other fault, which has no
    /// form of its own.
    func supabaseResponse(to request: SandboxRequest, _ endpoint: Endpoint) -> ServerResponse? {
        guard endpoint.isSupabase, case .refusal(let code, let status) = kind else { return nil }
        if let body { return SupabaseResponses.json(body, status: status) }
        return SupabaseResponses.refusal(
            SupabaseErrorResponse(status, code, message ?? "This is a fault."),
            version: request.fields["X-Supabase-Api-Version"])
    }
}
