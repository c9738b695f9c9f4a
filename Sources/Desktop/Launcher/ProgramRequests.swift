public import Secrets
internal import StrictJSON

// Programs that the user is to see, through the helper. The daemon names a scheme or a web page; the configuration and
// the desktop decide which program is run.
extension HelperConnection {
    /// A service manager takes some steps, each with a timeout of a few seconds.
    private static let timeout: Duration = .seconds(30)

    /// Starts the program that is configured for the scheme, with the URL in place of `{url}`: as a transient service
    /// of the user's service manager, or as a detached process where there is none. Returns when the program runs.
    /// Throws ``HelperError/programFailed(reason:)`` if it could not be started.
    public func startApplication(scheme: String, url: Secret) async throws(HelperError) {
        let members = JSONObject([.init("do", "start_application"), .init("scheme", .string(scheme))])
        try await start(members, url)
    }

    /// Opens an `http` or `https` page with the desktop's opener (`xdg-open`). Returns when the opener runs; whether
    /// the page was shown is unknown. Throws ``HelperError/programFailed(reason:)`` if it could not be started.
    ///
    /// - Parameter activationToken: lets the opened window come to the front; from an action of a notification.
    public func openPage(url: String, activationToken: String? = nil) async throws(HelperError) {
        var members = JSONObject([.init("do", "open_page")])
        members["activation_token"] = activationToken.map { .string($0) }
        try await start(members, Secret(url))
    }

    private func start(_ members: JSONObject, _ url: Secret) async throws(HelperError) {
        guard url.count <= Application.maxURL else {
            throw .programFailed(reason: "was not started: the URL is longer than \(Application.maxURL) bytes")
        }
        let answer: HelperResponse
        do throws(HelperError) {
            answer = try await request(members, secret: url, timeout: HelperConnection.timeout)
        } catch {
            guard case .commandFailed(let reason) = error else { throw error }
            throw .programFailed(reason: reason)
        }
        guard answer.members["started"]?.bool == true else {
            throw .programFailed(reason: answer.members["reason"]?.string ?? "was not started")
        }
    }
}
