import Glibc
import RingbackClient
import Terminal

/// Questions to the user at the terminal. Ctrl-C and the end of the input end them.
struct Questions {
    /// The error's text if they end without an answer.
    let ending: String

    static let needed = "An answer is needed here. Ctrl-C ends this."

    static func confirm(_ question: String, _ deed: String, orBy command: ShownCommand) throws(RingbackError) {
        guard Console.Stream.input.isTerminal, Console.Stream.errors.isTerminal else {
            throw RingbackError(
                .cancelled, "Without a terminal nothing is \(deed) unless you confirm it: \(shown: command)")
        }
        guard Prompt.confirm(question) else { throw RingbackError(.cancelled, "Nothing was \(deed).") }
    }

    static var arePossible: Bool { PasteEntry.isPossible && Console.Stream.errors.isTerminal }

    /// The answer without blanks around it. It may be empty.
    func line(_ question: String) throws(RingbackError) -> String {
        _ = Console.write(question, to: .errors)
        guard let line = readLine() else {
            Output.note("")
            throw RingbackError(.cancelled, ending)
        }
        return line
    }

    /// An answer that is not empty. An empty line means the default, if there is one.
    func text(_ question: String, default usual: String? = nil) throws(RingbackError) -> String {
        while true {
            let answer = try line(question + (usual.map { " [\($0)]" } ?? "") + ": ")
            if let text = answer.isEmpty ? usual : answer { return text }
            Output.note(Questions.needed)
        }
    }

    /// One of several, by its number. An empty line means the first.
    func choose(_ question: String, among labels: [String]) throws(RingbackError) -> Int {
        for (index, label) in labels.enumerated() { Output.note("  \(index + 1)  \(label)") }
        while true {
            let answer = try text(question, default: "1")
            if let number = Int(answer), labels.indices.contains(number - 1) { return number - 1 }
            let shown = Sanitizer.line(answer, limit: 80)
            Output.note("There is no “\(shown)” in the list. Type a number from 1 to \(labels.count).")
        }
    }

    func confirm(_ question: String, byDefault: Bool) throws(RingbackError) -> Bool {
        let answer = try line(question + (byDefault ? " [Y/n] " : " [y/N] "))
        return answer.isEmpty ? byDefault : Prompt.isYes(answer)
    }

    /// An answer that is not shown; nil for an empty line.
    func secret(_ question: String) throws(RingbackError) -> String? {
        let line = try SecretInput.readHidden(question)
        guard let line, !Signals.isInterrupted else { throw RingbackError(.cancelled, ending) }
        return line.isEmpty ? nil : line
    }

    /// Nil at the end of the input, and after a signal.
    private func readLine() -> String? {
        guard let line = try? SecretInput.readLine(of: 0), !Signals.isInterrupted else { return nil }
        return line.split { $0 == " " || $0 == "\t" || $0.isNewline }.joined(separator: " ")
    }
}

/// What must not be seen (passwords, codes, tokens) is a line of a terminal without echo, of standard input or of a
/// descriptor: never an argument or a variable, which other programs can read. Several values from one descriptor are
/// lines of it, in the order in which they are asked for.
enum SecretInput {
    /// In bytes. Tokens are the longest.
    static let maxLength = 16_384

    /// True if a user is asked: no other descriptor was named, and standard input is a terminal.
    static func asksUser(_ descriptor: Int32?) -> Bool {
        (descriptor ?? 0) == 0 && Console.Stream.input.isTerminal
    }

    static func read(
        _ name: String, from descriptor: Int32?, otherwise consequence: String = "Nothing was sent."
    ) throws(RingbackError) -> String {
        if let text = try readOptional(name, from: descriptor) { return text }
        let ways = asksUser(descriptor) ? "" : ways(from: descriptor)
        throw RingbackError(.cancelled, "No \(name) was read. \(consequence)\(ways)")
    }

    /// A value that is read only from a descriptor that was named for it.
    static func readNamed(_ name: String, from descriptor: Int32?) throws(RingbackError) -> String? {
        guard let descriptor else { return nil }
        return try read(name, from: descriptor)
    }

    private static func ways(from descriptor: Int32?) -> String {
        guard (descriptor ?? 0) == 0 else { return " Descriptor \(descriptor ?? 0) held no such line." }
        return " It is asked for on a terminal; else it is a line of standard input, or of a descriptor (see --help)."
    }

    /// Nil for an empty line, and at the end of what there is.
    static func readOptional(
        _ name: String, from descriptor: Int32?, hint: String = ""
    ) throws(RingbackError) -> String? {
        let first = name.prefix(1).uppercased() + name.dropFirst()
        let line = try line("\(first) (it is not shown\(hint)): ", from: descriptor)
        return line?.isEmpty == false ? line : nil
    }

    /// A new value is asked for twice on a terminal, since what is typed is not shown.
    static func readNew(_ name: String, from descriptor: Int32?) throws(RingbackError) -> String {
        let first = try read(name, from: descriptor)
        guard asksUser(descriptor) else { return first }
        guard try line("The same again: ", from: descriptor) == first else {
            throw RingbackError(.cancelled, "The two are not the same. Nothing was sent.")
        }
        return first
    }

    /// One line; nil at the end, or when `other` became readable first.
    static func line(
        _ question: String, from descriptor: Int32?, orEndedBy other: Int32 = -1
    ) throws(RingbackError) -> String? {
        let line = try asksUser(descriptor) ? readHidden(question, other) : readLine(of: descriptor ?? 0, other)
        // After an interruption nothing may be sent.
        if Signals.isInterrupted { throw RingbackError(.cancelled, "Interrupted. Nothing was sent.") }
        return line
    }

    fileprivate static func readHidden(_ question: String, _ other: Int32 = -1) throws(RingbackError) -> String? {
        let signals = try Signals.interruption().descriptor
        return Prompt.readHidden(question, limit: maxLength, interruption: signals, orEndedBy: other)
    }

    /// Reads byte by byte: what follows the line is for the next reader.
    fileprivate static func readLine(of descriptor: Int32, _ other: Int32 = -1) throws(RingbackError) -> String? {
        var bytes: [UInt8] = []
        let signals = try Signals.interruption().descriptor
        while true {
            var entries = [descriptor, signals, other].map {
                pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
            }
            if unsafe poll(&entries, 3, -1) < 0, errno != EINTR { throw unreadable(descriptor, errno) }
            if entries[1].revents != 0 || entries[2].revents != 0 { return nil }
            guard entries[0].revents != 0 else { continue }
            var byte: UInt8 = 0
            let count = unsafe Glibc.read(descriptor, &byte, 1)
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            guard count >= 0 else { throw unreadable(descriptor, errno) }
            if count == 0, bytes.isEmpty { return nil }
            if count == 0 || byte == 0x0A { break }
            bytes.append(byte)
            guard bytes.count <= maxLength else {
                throw RingbackError(.systemError, "A line is longer than \(maxLength) bytes.")
            }
        }
        if bytes.last == 0x0D { bytes.removeLast() }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func unreadable(_ descriptor: Int32, _ code: Int32) -> RingbackError {
        RingbackError(
            .systemError,
            "Descriptor \(descriptor) cannot be read: \(unsafe String(cString: strerror(code))). Nothing was sent.")
    }
}

enum Display {
    /// True where a browser can be opened: there is a display, or BROWSER is set.
    static var hasBrowser: Bool {
        ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"].contains { SocketPlace.variable($0)?.isEmpty == false }
    }
}
