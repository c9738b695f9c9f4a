import Glibc
import RingbackClient
import Terminal

/// What has become of the address that a browser was started with, and what the user has been told of it. Each thing is
/// told once.
struct PageOpening {
    /// The delay before the user is told anything. A running browser fetches the page sooner. A browser that has to be
    /// started may need longer.
    static let patience: Duration = .seconds(5)

    /// What is to be told now.
    enum News: Equatable {
        /// The page has not been fetched yet. The browser may only be slow.
        case notOpened
        /// Another user asked for the page and was not sent to it. Nil if the system does not tell who.
        case foreign(uid: Int?)
        /// Newer addresses have replaced it, and no fetch of the page was observed.
        case replaced
    }

    /// The address that was opened.
    private let url: String?
    private var hasToldNotOpened = false
    private var hasToldForeign = false
    /// Nothing is to be told any more.
    private(set) var isSettled = false

    /// - Parameter flow: as it began, with the address that was opened.
    init(of flow: Flow) { url = flow.openURL }

    /// Why no browser was started.
    static func noAddress(_ error: RingbackError?) -> String {
        let reason = error?.detail ?? "The daemon has no address for a browser to open."
        return
            "No browser was started. \(Sanitizer.line(reason, limit: 400)) The page's own address is not passed to a "
            + "program, because other users of this machine could read it there and sign you in as themselves. Copy it "
            + "into the address bar of a browser."
    }

    /// - Parameter later: the same flow after a while.
    mutating func news(in later: Flow) -> News? {
        guard let opened = later.openAddresses.first(where: { $0.url == url }) else {
            isSettled = true
            return url == nil ? nil : .replaced
        }
        switch opened.status {
        case .unused:
            defer { hasToldNotOpened = true }
            return hasToldNotOpened ? nil : .notOpened
        case .foreign:
            defer { hasToldForeign = true }
            return hasToldForeign ? nil : .foreign(uid: opened.uid)
        default:
            isSettled = true
            return nil
        }
    }
}

extension PageOpening.News {
    /// The message for the user.
    var text: String {
        switch self {
        case .notOpened:
            return "The sign-in page has not been opened yet. Your browser may still be starting."
        case .replaced:
            return "The address that the browser was started with may not work any more: newer sign-in calls have got "
                + "theirs since."
        case .foreign(let uid):
            let who = uid.map { "uid \($0)" } ?? "a program that is not known to be yours"
            return "The sign-in page was requested by \(who), not by you (uid \(getuid())), and was not sent. "
                + "If that is your browser in a container, name its uid in callback_peer_uids."
        }
    }
}
