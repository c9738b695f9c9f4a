import Glibc
import RingbackClient
import Terminal

/// Questions to the user at the terminal; each answer is a line. Ctrl-C and the end of the input end them.
struct Questions {
    let interruption: Interruption
    /// The error's text if they end without an answer.
    let ending: String

    /// After an empty answer where there must be one.
    static let needed = "An answer is needed here. Ctrl-C ends this."

    /// True if a user is at the terminal and sees what is asked.
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

    func confirm(_ question: String, byDefault: Bool) throws(RingbackError) -> Bool {
        let answer = try line(question + (byDefault ? " [Y/n] " : " [y/N] "))
        return answer.isEmpty ? byDefault : Prompt.isYes(answer)
    }

    /// An answer that is not shown; nil for an empty line.
    func secret(_ question: String) throws(RingbackError) -> String? {
        let line = Prompt.readHidden(
            question, limit: SecretInput.maxLength, interruption: interruption.descriptor)
        guard let line, !interruption.isInterrupted else { throw RingbackError(.cancelled, ending) }
        return line.isEmpty ? nil : line
    }

    /// A line of the terminal without blanks around it; nil at the end of the input, and after a signal.
    private func readLine() -> String? {
        while true {
            var entries = [0, interruption.descriptor].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            if unsafe poll(&entries, 2, -1) < 0, errno != EINTR { return nil }
            if interruption.isInterrupted || entries[1].revents != 0 { return nil }
            guard entries[0].revents != 0 else { continue }
            // A terminal gives a line at a time.
            var bytes = [UInt8](repeating: 0, count: 4_096)
            let count = unsafe read(0, &bytes, bytes.count)
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            guard count > 0 else { return nil }
            let words = String(decoding: bytes[..<count], as: UTF8.self).split {
                $0 == " " || $0 == "\t" || $0.isNewline
            }
            return words.joined(separator: " ")
        }
    }
}
