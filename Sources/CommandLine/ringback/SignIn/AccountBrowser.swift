import RingbackBase
import RingbackClient
import Terminal

/// The program that opens an account's pages: the account's `browser`, or else the user's default browser.
struct AccountBrowser {
    /// Nil for the default browser.
    let command: [String]?

    /// - Parameters:
    ///   - account: the account's JSON, if it is known.
    ///   - calls: the daemon that said it. Only one of this machine may name a program.
    init(of account: JSON?, by calls: BrokerCalls) {
        let words = account?["browser"]?.array?.compactMap(\.string) ?? []
        command = words.isEmpty || !calls.isServedHere ? nil : words
    }

    /// Returns the pid; nil if no program was started.
    func start(_ url: String) -> Int32? { Browser.start(url, in: command) }

    func open(_ url: String) -> Bool { Browser.open(url, in: command) }

    func notStarted(_ url: String) -> String {
        guard let name, LoopbackURL.isSafeToOpen(url) else { return BrowserFailure.notStarted(url) }
        return "No browser was started: the account's browser is “\(name)”, which cannot be started."
    }

    func ended(_ status: Int32) -> String {
        name.map { "No browser was opened: the account's browser “\($0)” ended with status \(status)." }
            ?? BrowserFailure.ended(status)
    }

    private var name: String? { command.map { Sanitizer.line($0[0], limit: 200) } }
}

/// Two accounts of one provider whose sign-ins ended as the same user, usually because the browser was signed in there.
enum SameUser {
    /// - Parameter document: the account's JSON after its sign-in.
    static func warn(_ name: String, _ document: JSON) {
        let others = document["same_user_as"]?.array?.compactMap(\.string) ?? []
        guard !others.isEmpty else { return }
        let list = Sanitizer.line(others.joined(separator: ", "), limit: 400)
        Output.note(
            "\(Sanitizer.line(name)) and \(list) are signed in as the same user of one provider. If another user was "
                + "meant, run: \(shown: "ringback login \(name) --again --switch")")
    }
}
