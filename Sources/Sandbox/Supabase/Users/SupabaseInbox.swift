internal import HTTPMessages
internal import LocalHTTP
internal import StrictJSON

/// What a test sees in a person's place, and what breaks before a project's endpoint is reached.
extension SandboxProvider {
    /// `GET mailbox` and `GET messages`: what went out by mail, and by phone, in order. `to` and `type` pick some.
    func letters(_ request: SandboxRequest, isMail: Bool) -> ServerResponse {
        let wanted = Parameters(request.query)
        let letters = withState { state in
            state.supabase.letters.filter { letter in
                (letter.channel == "email") == isMail && (wanted["to"] ?? letter.to) == letter.to
                    && (wanted["type"] ?? letter.type) == letter.type
            }
        }
        return Answers.json(["letters": .array(letters.map(\.json))])
    }
}

extension Fault {
    /// A refusal in the shape that the request asked for, or with a `body` as it was given; nil for any other fault,
    /// which has no shape of its own.
    func supabaseAnswer(to request: SandboxRequest, _ endpoint: Endpoint) -> ServerResponse? {
        guard endpoint.isSupabase, case .refusal(let code, let status) = kind else { return nil }
        if let body { return SupabaseAnswers.json(body, status: status) }
        return SupabaseAnswers.refusal(
            SupabaseRefusal(status, code, message ?? "This is a fault."),
            version: request.fields["X-Supabase-Api-Version"])
    }
}
