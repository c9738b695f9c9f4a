import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

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

/// Finds the flow that waits for a code, by its identifier or by its account's name.
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
                + "\(shown: "ringback login \(shown) --method otp --email ADDRESS")"
        )
    }
}

/// A QR code for a phone's camera, drawn by the program `qrencode`. The text may hold a secret (the key of an
/// authenticator app), so the program reads it from standard input: arguments and files can be read by others.
///
/// It is drawn only where all of it fits, since a part of it is useless. The text is printed beside it in any case.
enum QRDisplay {
    private static let program = "qrencode"

    /// Draws on standard error, if that is a terminal with enough rows and columns: a code that has scrolled away
    /// cannot be scanned.
    ///
    /// - Parameter others: texts above and below that the user needs too. They must not scroll away either.
    /// - Returns: false if nothing was drawn.
    @discardableResult
    static func show(_ text: String, after introduction: String, beside others: [String] = []) -> Bool {
        guard let columns = Console.Stream.errors.columns else { return false }
        guard Tool.isInstalled(program) else {
            Output.note("No QR code is shown: the program \(program) draws one, if it is installed.")
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
            answer.output.allSatisfy({ "█▀▄# \n".contains($0) })
        else { return nil }
        return answer.output.split(separator: "\n")
    }
}

/// How a QR code is drawn on a terminal. Dark modules must be darker than light ones, whatever colours the terminal uses.
/// Own colours are used wherever colour is allowed, because a terminal's background cannot be determined reliably.
enum QRInk {
    /// Independent of the terminal's colours; needs 256 colours.
    case blackOnWhite
    /// Without colours, for a terminal with light text on a dark background.
    case lightText
    /// Without colours, for a terminal with dark text on a light background.
    case darkText

    /// Black on white where colour may be used; otherwise by `COLORFGBG`, in which several terminals describe their
    /// colours; light text if it is not set.
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
