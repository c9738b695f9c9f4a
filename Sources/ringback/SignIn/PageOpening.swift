import Glibc
import RingbackClient

/// Whether a browser has fetched the address that it was started with.
enum PageOpening {
    /// A browser that was started fetches the page within this time, or something is wrong.
    static let patience: Duration = .seconds(5)

    /// Why the user has to open the page; nil if their browser has fetched it.
    ///
    /// - Parameters:
    ///   - flow: as it began, with the address that was opened.
    ///   - later: the same flow after a while.
    static func trouble(with flow: Flow, as later: Flow) -> String? {
        guard let opened = later.openAddresses.first(where: { $0.url == flow.openURL }) else { return nil }
        switch opened.status {
        case .unused:
            return "No browser has fetched the sign-in page within \(patience.components.seconds) seconds."
        case .foreign:
            let who = opened.uid.map { "uid \($0)" } ?? "a program that is not known to be yours"
            return "The sign-in page was requested by \(who), not by you (uid \(getuid())), and was not sent. "
                + "If that is your browser in a container, name its uid in callback_peer_uids."
        default: return nil
        }
    }
}
