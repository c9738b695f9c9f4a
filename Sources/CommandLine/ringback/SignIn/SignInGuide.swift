import Glibc
import RingbackBase
import RingbackClient
import Terminal

/// Helps a user whose browser is not on this machine: a QR code of the address, and how the callback gets here.
enum SignInGuide {
    static func show(for flow: Flow, hasQR: Bool, takesPaste: Bool) {
        let notes = flow.waitingFor == .page ? ownPageNotes(on: flow) : notes(on: flow, takesPaste)
        if hasQR, let url = flow.authorizationURL {
            // The address is here too, and a telephone seldom ends such a sign-in: the program is not missed.
            QRDisplay.show(
                url, after: "The sign-in page, for a camera:", beside: [Sanitizer.line(url, limit: 16_384)] + notes,
                namesProgram: false)
        }
        notes.forEach { Output.note($0) }
    }

    /// The daemon serves the page on loopback, so a browser on another machine does not even reach it.
    private static func ownPageNotes(on flow: Flow) -> [String] {
        guard let line = flow.pageURL.flatMap(SSHForwarding.line) else { return [] }
        let name = Sanitizer.line(flow.account)
        return [
            "The page is on this machine. For a browser on another machine, first run there:\n  \(shown: line)",
            "Without a browser: \(shown: "ringback login \(name) --method otp --email ADDRESS")",
        ]
    }

    private static func notes(on flow: Flow, _ takesPaste: Bool) -> [String] {
        guard flow.waitingFor == .callback, let redirectURI = flow.redirectURI else { return [] }
        let scheme = Sanitizer.line(String(redirectURI.prefix { $0 != ":" }), limit: 100)
        var notes: [String] = []
        let way: String
        switch scheme {
        case "http":
            guard let line = SSHForwarding.line(for: redirectURI) else {
                way =
                    "Is the browser on another machine? It ends at a page that does not load. That page's address is "
                    + "the callback URL."
                break
            }
            let intro = "The callback goes to this machine. For a browser on another machine, first run there:"
            notes.append("\(intro)\n  \(shown: line)")
            way = "or let the sign-in end at a page that does not load. That page's address is the callback URL."
        case "https":
            let place = Sanitizer.line(redirectURI, limit: 400)
            way = "The sign-in ends at a page whose address begins with \(place): it is the callback URL."
        default:
            notes.append(
                "A browser on this machine delivers the callback itself, if the desktop knows \(scheme): "
                    + "links (\(shown: "ringback scheme register \(scheme)")).")
            way =
                "A browser on another machine cannot open that link, which is the callback URL. Firefox shows it in "
                + "the address line, Chromium in the console of its developer tools (F12)."
        }
        // Where the callback URL is pasted, a question for it follows.
        return notes + [takesPaste ? way : "\(way) Pass it to: ringback complete"]
    }
}

/// About a sign-in that used another method than the user may expect, or that failed where another is possible.
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

    static func deviceRefused(_ error: RingbackError) -> String {
        let code = error.providerCode.map { " (\(Sanitizer.line($0)))" } ?? ""
        let why = error.kind == .methodUnsupported ? "offers no codes" : "gives no codes\(code)"
        return "There is no display here and no BROWSER, and the provider \(why) for another device."
    }

    /// Advice for an error when a device code was asked for by name. Many providers allow a client one method only.
    static func withoutDevice(_ error: RingbackError, _ account: String) -> RingbackError {
        let isMissing = error["method"]?.string == "device"
        guard isMissing || [.providerError, .invalidProviderResponse].contains(error.kind) else { return error }
        let reason = isMissing ? "" : "The provider may have no codes for this client. "
        return error.adding(
            "\(reason)Sign in with a browser: \(shown: "ringback login \(account)"), or "
                + "\(shown: "ringback login \(account) --no-browser") where there is none.")
    }

    static func switching(_ error: RingbackError, _ account: String, _ options: ShownCommand = "") -> RingbackError {
        error.adding("To replace the held session, run: \(shown: "ringback login \(account) \(options) --switch")")
    }

    /// Another sign-in is pending. `options` are ``SupabaseAdvice/options``: without them the command would begin yet
    /// another one.
    static func replacing(_ error: RingbackError, _ account: String, _ options: ShownCommand) -> RingbackError {
        error.adding(
            "Finish it, replace it (\(shown: "ringback login \(account) \(options) --replace")), or run: "
                + "\(shown: "ringback cancel \(account)")")
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
        return failure.adding("To begin again, run: \(shown: "ringback login \(flow.account)")")
    }
}

extension Flow {
    /// The user is signed in, and stays so whatever the flow's outcome.
    fileprivate var concernsHeldUser: Bool { method == .link || method == .userUpdate }
}

/// Over SSH the browser is on another machine, while the callback goes to the loopback of this one. A forwarded port
/// brings it here. The command is made of the connection's own values, and only of characters that no shell changes.
enum SSHForwarding {
    /// True if a browser that is opened here is seen by nobody.
    static var hasNoBrowser: Bool {
        SocketPlace.variable("SSH_CONNECTION")?.isEmpty == false && !Display.hasBrowser
    }

    static func line(for redirectURI: String) -> ShownCommand? {
        // The client's address and port, the server's address and port.
        let words = (SocketPlace.variable("SSH_CONNECTION") ?? "").split(separator: " ")
        guard words.count == 4, let callback = LoopbackURL(redirectURI), let user = userName(), isPlain(user, "._-")
        else { return nil }
        var host = words[2]
        // An IPv4 address as a dual-stack server writes it.
        if host.lowercased().hasPrefix("::ffff:"), host.contains(".") { host = host.dropFirst("::ffff:".count) }
        // An address, perhaps with a zone. If sshd runs on a pipe it knows none, and says `UNKNOWN`.
        guard host.contains(".") || host.contains(":"), isPlain(String(host), ":.%-_"), let port = UInt16(words[3]),
            port > 0
        else { return nil }
        let target = callback.isIPv6 ? "[::1]" : "127.0.0.1"
        let own = callback.isIPv6 ? "[::1]:" : ""
        let forwarding = "\(own)\(callback.port):\(target):\(callback.port)"
        return ShownCommand(
            words: ["ssh", "-L", forwarding, "\(user)@\(host)"] + (port == 22 ? [] : ["-p", "\(port)"]))
    }

    private static func isPlain(_ text: String, _ others: String) -> Bool {
        !text.isEmpty && !text.hasPrefix("-")
            && text.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte & 0xDF) || others.utf8.contains(byte)
            }
    }

    /// By the uid, from /etc/passwd. Users of a directory service are not in it; sshd has set their name.
    private static func userName() -> String? {
        let passwd = String(decoding: (try? Files.contents(of: "/etc/passwd")) ?? [], as: UTF8.self)
        for line in passwd.split(separator: "\n") {
            let fields = line.split(separator: ":", omittingEmptySubsequences: false)
            if fields.count >= 3, UInt32(fields[2]) == getuid() { return String(fields[0]) }
        }
        return SocketPlace.variable("USER") ?? SocketPlace.variable("LOGNAME")
    }
}

/// Shows what a user needs for a sign-in on another device: the address, the code, and a QR code. The code is shown
/// even if the address contains it, since the page shows it too and the user compares the two (RFC 8628 section 3.3.1).
enum DeviceDisplay {
    static func show(_ flow: Flow, hasQR: Bool) {
        guard let code = flow.userCode.map({ Sanitizer.line($0) }), let address = flow.verificationURI else { return }
        let name = Sanitizer.line(flow.account)
        let host = (try? WebURL(parsing: address))?.host.map { " at " + Sanitizer.line($0, limit: 260) } ?? ""
        // The page is the provider's: the daemon serves none that takes such a code.
        func introduction(_ code: String) -> String {
            """
            To sign in to \(name), open the provider's page\(host) on any device:
              \(Sanitizer.line(address, limit: 2_048))
            and enter the code:  \(code)
            """
        }
        // RFC 8628 section 5.4: an attacker may send the user a code of the attacker's own flow.
        let warning = "Enter no code that another person sent you: it would sign them in to your account."
        Output.note(introduction(Style.bold.apply(code, on: .errors)))
        if hasQR {
            QRDisplay.show(
                flow.verificationURIComplete ?? address,
                after: "Or scan this; go on if the page shows the same code:", beside: [introduction(code), warning])
        }
        Output.note(warning)
    }
}

/// Texts for the user of a restricted socket: in a container, or at the far end of a connection.
enum Elsewhere {
    /// Comes before a command that has no effect on this machine.
    static let place = "On the machine that runs the daemon:"

    static func restriction(_ grant: JSON?) -> String? {
        guard let grant, let name = grant["name"]?.string else { return nil }
        let scope = grant["scope"]?.string.map { " for at most “\($0)”" } ?? ""
        let end = grant["expires_at"]?.integer
        let validity = end.map { ", valid \(TimeText.validity(until: $0, now: TimeText.now()))" } ?? ""
        let what = grant["mcp"] == nil ? "tokens" : "the MCP server"
        return "\(name): \(what) of \(grant.texts("accounts").joined(separator: ", "))\(scope)\(validity)"
    }
}

enum FlowChoice {
    static func find(_ name: String, _ calls: BrokerCalls) throws(RingbackError) -> Flow {
        let list = try calls.flows()
        // An ended flow is found by its identifier, so that its own error is shown.
        if let flow = list.first(where: { $0.id == name }) {
            if let failure = flow.failure { throw failure }
            return flow
        }
        let flows = list.filter { $0.account == name && $0.status == .pending }
        if let flow = flows.first(where: CodeEntry.isAwaited) { return flow }
        let shown = Sanitizer.line(name)
        guard flows.isEmpty else {
            throw RingbackError(.stateConflict, "The pending sign-in of \(shown) does not wait for a code.")
        }
        guard let account = try? calls.account(name) else {
            throw RingbackError(.accountNotFound, "There is no account and no pending sign-in “\(shown)”.")
        }
        guard account["provider"]?.string == "supabase" else {
            throw RingbackError(
                .methodUnsupported,
                "The provider of \(shown) sends no codes for a sign-in. To sign in: \(shown: "ringback login \(shown)")"
            )
        }
        throw RingbackError(
            .flowNotFound,
            "No sign-in for \(shown) is waiting for a code. To begin one: "
                + "\(shown: "ringback login \(shown) --method otp --email ADDRESS")")
    }
}

/// A QR code for a phone's camera, drawn by the program `qrencode`. The text may hold a secret (the key of an
/// authenticator app), so the program reads it from standard input: arguments and files can be read by others.
///
/// It is drawn only where all of it fits, since a part of it is useless. The text is printed beside it in any case.
enum QRDisplay {
    private static let program = "qrencode"

    /// Draws on standard error, if that is a terminal with enough rows and columns. False if nothing was drawn.
    ///
    /// - Parameters:
    ///   - others: texts above and below that the user needs too. They must not scroll away either.
    ///   - namesProgram: the user is told what to install.
    @discardableResult
    static func show(
        _ text: String, after introduction: String, beside others: [String] = [], namesProgram: Bool = true
    ) -> Bool {
        guard let columns = Console.Stream.errors.columns else { return false }
        guard Tool.isInstalled(program) else {
            if namesProgram {
                Output.note("No QR code is shown: the program \(program) draws one, if it is installed.")
            }
            return false
        }
        let ink = QRInk.suiting(.errors)
        guard let lines = drawing(of: text, ink), let first = lines.first, first.count <= columns else { return false }
        // The code is drawn light on dark, which not every camera reads.
        let hint =
            QRInk.isGuessed(for: .errors)
            ? "(If this terminal has a light background and the camera reads nothing, set COLORFGBG=\"0;15\".)" : nil
        let texts = others + [introduction] + (hint.map { [$0] } ?? [])
        // The last row is for the cursor and the line that says what is awaited.
        let rows = texts.reduce(lines.count + 1) { $0 + TextWidth.rows(of: $1, columns: columns) }
        guard rows <= Console.Stream.errors.rows ?? .max else { return false }
        Output.note(introduction)
        Output.note(lines.map(ink.apply).joined(separator: "\n"))
        if let hint { Output.note(hint) }
        return true
    }

    /// The lines of the drawing; nil if the program fails, as for a text that is too long, or prints anything else.
    private static func drawing(of text: String, _ ink: QRInk) -> [Substring]? {
        // Four light modules around the code are what ISO/IEC 18004 asks for.
        let arguments = [program, "-t", ink.format, "-m", "4", "-o", "-"]
        guard let answer = Tool.run(arguments, within: .seconds(5), input: Array(text.utf8)), answer.status == 0,
            answer.text.allSatisfy({ "█▀▄# \n".contains($0) })
        else { return nil }
        return answer.text.split(separator: "\n")
    }
}

/// How a QR code is drawn on a terminal. Dark modules must be darker than light ones, whatever colours the terminal
/// uses. Own colours are used wherever colour is allowed: a terminal's background is not reliably known.
enum QRInk {
    /// Independent of the terminal's colours; needs 256 colours.
    case blackOnWhite
    /// Without colours, for a terminal with light text on a dark background.
    case lightText
    /// Without colours, for a terminal with dark text on a light background.
    case darkText

    /// Without colour by `COLORFGBG`, in which several terminals describe their colours; light text if it is not set.
    static func suiting(_ stream: Console.Stream) -> QRInk {
        if stream.hasColor { return .blackOnWhite }
        // The numbers of the text's and the background's colour, in some terminals with another value in between. 7 and
        // 15 are the two whites.
        let background = SocketPlace.variable("COLORFGBG")?.split(separator: ";").last ?? ""
        return ["7", "15"].contains(background) ? .darkText : .lightText
    }

    /// True if the choice is only a guess: there is no colour and no `COLORFGBG`.
    static func isGuessed(for stream: Console.Stream) -> Bool {
        !stream.hasColor && SocketPlace.variable("COLORFGBG") == nil
    }

    /// The format of `qrencode`. In UTF8 the characters are the light modules, in ASCII the dark ones; `i` inverts.
    /// ASCII needs twice the width and twice the height.
    var format: String {
        switch self {
        case .lightText: Console.isUTF8 ? "UTF8" : "ASCIIi"
        case .blackOnWhite, .darkText: Console.isUTF8 ? "UTF8i" : "ASCII"
        }
    }

    func apply(_ line: Substring) -> String {
        self == .blackOnWhite ? "\u{1B}[38;5;16;48;5;231m\(line)\u{1B}[0m" : String(line)
    }
}
