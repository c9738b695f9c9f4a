import CLinux
import Glibc
import RingbackBase
import RingbackClient
import Terminal

/// The program that opens an account's pages: the account's `browser`, or else the user's default browser.
struct AccountBrowser {
    /// Nil for the default browser.
    let command: [String]?
    private let written = BrowserOutput()

    /// - Parameters:
    ///   - account: the account's JSON, if it is known.
    ///   - calls: the daemon that said it. Only one of this machine may name a program.
    init(of account: JSON?, by calls: BrokerCalls) {
        let words = account?["browser"]?.array?.compactMap(\.string) ?? []
        command = words.isEmpty || !calls.isServedHere ? nil : words
    }

    /// Returns the pid; nil if no program was started.
    func start(_ url: String) -> Int32? { Browser.start(url, in: command, log: written.place) }

    /// False if no program was started, as over SSH, where nobody would see the default browser.
    func open(_ url: String) -> Bool {
        (command != nil || !SSHForwarding.hasNoBrowser) && Browser.open(url, in: command)
    }

    func notStarted(_ url: String) -> String {
        guard let name, LoopbackURL.isSafeToOpen(url) else { return BrowserFailure.notStarted(url) }
        return "No browser was started: the account's browser is “\(name)”, which cannot be started."
    }

    /// With the last line that it wrote.
    func ended(_ status: Int32) -> String {
        let text =
            name.map { "No browser was opened: the account's browser “\($0)” ended with status \(status)." }
            ?? BrowserFailure.ended(status)
        return text + (written.lastLine.map { " Its last line: “\($0)”." } ?? "")
    }

    private var name: String? { command.map { Sanitizer.line($0[0], limit: 200) } }
}

/// What a browser writes. It may outlive this process, and writing to a pipe that nobody reads would end it (SIGPIPE).
/// So it writes to a file in memory, whose size is bounded.
final class BrowserOutput {
    private static let size = 65_536
    private let descriptor = clinux_log_file(size)

    deinit { if descriptor >= 0 { close(descriptor) } }

    var place: Subprocess.Output { descriptor >= 0 ? .descriptor(descriptor) : .nothing }

    var lastLine: String? {
        var bytes = [UInt8](repeating: 0, count: BrowserOutput.size)
        guard descriptor >= 0, unsafe pread(descriptor, &bytes, bytes.count, 0) > 0 else { return nil }
        let lines = bytes.split { $0 == 0 || $0 == 0x0A || $0 == 0x0D }.map { String(decoding: $0, as: UTF8.self) }
        return lines.last { $0.contains { !$0.isWhitespace } }.map { Sanitizer.line($0, limit: 300) }
    }
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
