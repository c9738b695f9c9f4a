import ArgumentParser
import RingbackClient

/// Which token of a session is meant, on every verb that gets one.
struct SessionOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Seconds the token must still be valid.", valueName: "seconds"))
    var minValid: Int?

    @Option(help: ArgumentHelp("Seconds to wait at most.", valueName: "seconds"))
    var timeout: Int?

    @Option(help: "A token downscoped to these scopes, space-separated.")
    var scope: String?

    @Option(help: "A token for this audience.")
    var audience: String?

    @Option(help: "A token for this resource (RFC 8707).")
    var resource: String?

    @Option(help: "Fail if the session has another subject.")
    var subject: String?

    func validate() throws {
        for seconds in [minValid, timeout] where (seconds ?? 0) < 0 {
            throw ValidationError("Seconds must be 0 or more.")
        }
    }

    /// - Parameter account: nil where something else names the session.
    func request(_ account: String?) -> SessionRequest {
        var request = SessionRequest(account: account)
        request.minValid = minValid
        request.timeout = timeout
        request.scope = scope
        request.audience = audience
        request.resource = resource
        request.subject = subject
        return request
    }
}
