import RingbackClient
import StrictJSON
import Terminal

/// Texts for the user of a restricted socket: in a container, or at the far end of a connection.
enum Elsewhere {
    /// Comes before a command that has no effect on this machine.
    static let place = "On the machine that runs the daemon:"

    /// What a restricted socket shows, from the `exposed_socket` of its status.
    static func restriction(_ grant: JSON?) -> String? {
        guard let name = grant?["name"]?.string else { return nil }
        let accounts = (grant?["accounts"]?.array ?? []).compactMap(\.string).joined(separator: ", ")
        let scope = grant?["scope"]?.string.map { " for at most “\($0)”" } ?? ""
        let end = grant?["expires_at"]?.integer
        let validity = end.map { ", valid \(TimeText.validity(until: $0, now: TimeText.now()))" } ?? ""
        let what = grant?["mcp"] == nil ? "tokens" : "the MCP server"
        return "\(name): \(what) of \(accounts)\(scope)\(validity)"
    }
}
