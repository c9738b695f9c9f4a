import Glibc
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

/// Helps a user whose browser is not on this machine: a QR code of the address, and how the callback gets here.
enum SignInGuide {
    /// - Parameters:
    ///   - flow: one whose address has been shown already.
    ///   - takesPaste: a callback URL can be pasted here.
    static func show(for flow: Flow, hasQR: Bool, takesPaste: Bool) {
        guard let url = flow.authorizationURL else { return }
        let notes = notes(on: flow, takesPaste)
        if hasQR {
            QRDisplay.show(
                url, after: "The sign-in page, for a camera:", beside: [Sanitizer.line(url, limit: 16_384)] + notes)
        }
        notes.forEach { Output.note($0) }
    }

    private static func notes(on flow: Flow, _ takesPaste: Bool) -> [String] {
        guard flow.waitingFor == .callback, let redirectURI = flow.redirectURI else { return [] }
        let scheme = Sanitizer.line(String(redirectURI.prefix { $0 != ":" }), limit: 100)
        switch scheme {
        case "http":
            let forwarding = SSHForwarding.line(for: redirectURI).map { line in
                """
                The callback goes to this machine. For a browser on another machine, first run there:
                  \(shown: line)
                """
            }
            let way =
                "Is the browser on another machine? It ends at a page that does not load. That page's address is the "
                + "callback URL."
            return [forwarding, handOver(way, takesPaste)].compactMap { $0 }
        case "https":
            let place = Sanitizer.line(redirectURI, limit: 400)
            return [
                handOver(
                    "The sign-in ends at a page whose address begins with \(place): it is the callback URL.", takesPaste
                )
            ]
        default:
            return [
                "A browser on this machine delivers the callback itself, if the desktop knows \(scheme): "
                    + "links (\(shown: "ringback scheme register \(scheme)")).",
                handOver(
                    "A browser on another machine cannot open that link, which is the callback URL. Firefox shows it in "
                        + "the address line, Chromium in the console of its developer tools (F12).", takesPaste),
            ]
        }
    }

    /// Where the callback URL is pasted, a question for it follows.
    private static func handOver(_ way: String, _ takesPaste: Bool) -> String {
        takesPaste ? way : "\(way) Pass it to: ringback complete"
    }
}

/// What to say about a sign-in that used another method than the user may expect, or that failed where another method
/// is possible. Each command can be run as it is printed.
enum SignInAdvice {
    static let deviceChosen = "There is no display here and no BROWSER: the sign-in uses a code on another device."

    /// How the user tells our own page from an imitation.
    static func words(_ words: String) -> String {
        "The sign-in page shows these two words: \(Sanitizer.line(words)). Enter nothing on a page that shows others."
    }

    /// The sign-in was begun by another call, and ends at that call's time limit.
    static func joined(_ flow: Flow) -> String {
        let name = Sanitizer.line(flow.account)
        let left = flow.expiresAt.map { ", \(TimeText.clock($0.secondsSince1970 - TimeText.now())) left" } ?? ""
        return "A sign-in to \(name) is in progress already, and this command has joined it\(left). To begin another: "
            + "\(shown: "ringback login \(name) --replace")"
    }

    /// True if the provider gives no device codes to this client, for whatever reason. Other methods may be possible.
    static func refusesDevice(_ error: RingbackError) -> Bool {
        [.methodUnsupported, .providerError, .invalidProviderResponse].contains(error.kind)
    }

    /// Why a page is shown and no device code.
    static func deviceRefused(_ error: RingbackError) -> String {
        let code = error.problem?.extensions["provider_code"]?.string.map { " (\(Sanitizer.line($0)))" } ?? ""
        let why = error.kind == .methodUnsupported ? "offers no codes" : "gives no codes\(code)"
        return "There is no display here and no BROWSER, and the provider \(why) for another device."
    }

    /// Advice for an error when a device code was asked for by name. Many providers allow a client one method only.
    static func withoutDevice(_ error: RingbackError, _ account: String) -> RingbackError {
        let isMissing = error.problem?.extensions["method"]?.string == "device"
        guard isMissing || [.providerError, .invalidProviderResponse].contains(error.kind) else { return error }
        let reason = isMissing ? "" : "The provider may have no codes for this client. "
        return adding(
            "\(reason)Sign in with a browser: \(shown: "ringback login \(account)"), or "
                + "\(shown: "ringback login \(account) --no-browser") where there is none.", to: error)
    }

    /// Another user is signed in. `options` are ``SupabaseAdvice/options``.
    static func switching(_ error: RingbackError, _ account: String, _ options: ShownCommand = "")
        -> RingbackError
    {
        adding(
            "To replace the held session, run: \(shown: "ringback login \(account) \(options) --switch")", to: error)
    }

    /// Another sign-in is pending. `options` are ``SupabaseAdvice/options``: without them the command would begin yet
    /// another one.
    static func replacing(_ error: RingbackError, _ account: String, _ options: ShownCommand)
        -> RingbackError
    {
        adding(
            "Finish it, replace it (\(shown: "ringback login \(account) \(options) --replace")), or run: "
                + "\(shown: "ringback cancel \(account)")",
            to: error)
    }

    /// Advice for a sign-in that began and failed. A change of a signed-in user has no other methods.
    static func advised(_ failure: RingbackError, of flow: Flow, _ options: ShownCommand = "") -> RingbackError {
        switch failure.kind {
        case _ where flow.concernsHeldUser: failure
        case .stateConflict: switching(failure, flow.account, options)
        case _ where flow.method == .device: withoutDevice(failure, flow.account)
        default: failure
        }
    }

    /// The same for a callback that came from elsewhere: no caller waits that could begin again.
    static func elsewhere(_ failure: RingbackError, of flow: Flow) -> RingbackError {
        let failure = advised(failure, of: flow)
        guard !flow.concernsHeldUser, failure.advice == nil else { return failure }
        return adding("To begin again, run: \(shown: "ringback login \(flow.account)")", to: failure)
    }

    static func adding(_ sentence: String, to error: RingbackError) -> RingbackError {
        var error = error
        error.advice = error.advice.map { "\($0) \(sentence)" } ?? sentence
        return error
    }
}

extension Flow {
    /// The flow belongs to a user who is signed in. The user stays signed in whatever its outcome.
    fileprivate var concernsHeldUser: Bool { method == .link || method == .userUpdate }
}

/// Over SSH the browser is on another machine, while the callback goes to the loopback of this one. A forwarded port
/// brings it here. The command is made of the connection's own values, and only of characters that no shell changes.
enum SSHForwarding {
    /// What to run where the browser is: `ssh -L 4711:127.0.0.1:4711 ada@192.0.2.7`. Nil without an SSH connection, or
    /// for a callback that does not come to a port of this machine.
    static func line(for redirectURI: String) -> ShownCommand? {
        guard let connection = SocketPlace.variable("SSH_CONNECTION"), let user = userName() else { return nil }
        return line(for: redirectURI, connection: connection, user: user)
    }

    /// - Parameter connection: the client's address and port, the server's address and port.
    static func line(for redirectURI: String, connection: String, user: String) -> ShownCommand? {
        let words = connection.split(separator: " ")
        guard words.count == 4, let callback = LoopbackURL(redirectURI), isPlain(user) else { return nil }
        var host = words[2]
        // An IPv4 address as a dual-stack server writes it.
        if host.lowercased().hasPrefix("::ffff:"), host.contains(".") { host = host.dropFirst("::ffff:".count) }
        guard isAddress(host), let port = UInt16(words[3]), port > 0 else { return nil }
        let target = callback.isIPv6 ? "[::1]" : "127.0.0.1"
        let own = callback.isIPv6 ? "[::1]:" : ""
        let forwarding = "\(own)\(callback.port):\(target):\(callback.port)"
        return ShownCommand(
            words: ["ssh", "-L", forwarding, "\(user)@\(host)"] + (port == 22 ? [] : ["-p", "\(port)"]))
    }

    /// An IPv4 or IPv6 address, the latter perhaps with a zone. If sshd runs on a pipe it knows no address, and says
    /// `UNKNOWN`.
    private static func isAddress(_ text: Substring) -> Bool {
        guard text.contains(".") || text.contains(":"), !text.hasPrefix("-") else { return false }
        return text.utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte & 0xDF) || ":.%-_".utf8.contains(byte)
        }
    }

    private static func isPlain(_ name: String) -> Bool {
        !name.isEmpty && !name.hasPrefix("-")
            && name.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte & 0xDF) || "._-".utf8.contains(byte)
            }
    }

    /// By the uid, from /etc/passwd. Users of a directory service are not in it; sshd has set their name.
    private static func userName() -> String? {
        name(of: getuid(), in: SSHForwarding.passwd()) ?? SocketPlace.variable("USER")
            ?? SocketPlace.variable("LOGNAME")
    }

    static func name(of uid: UInt32, in passwd: String) -> String? {
        for line in passwd.split(separator: "\n") {
            let fields = line.split(separator: ":", omittingEmptySubsequences: false)
            if fields.count >= 3, UInt32(fields[2]) == uid { return String(fields[0]) }
        }
        return nil
    }

    private static func passwd() -> String {
        let file = unsafe open("/etc/passwd", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return "" }
        defer { close(file) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while bytes.count < 4 << 20 {
            let count = unsafe read(file, &buffer, buffer.count)
            guard count > 0 else { break }
            bytes += buffer[..<count]
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
