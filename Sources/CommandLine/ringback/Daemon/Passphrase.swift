import RingbackClient
import Terminal

/// A passphrase comes from a terminal, where it is not shown, or as the first line of standard input: never from an
/// argument or the environment, which other programs can read.
enum Passphrase {
    private static let maxLength = 1_024

    static func read(_ question: String) throws(RingbackError) -> String {
        guard Console.Stream.input.isTerminal else {
            return try checked(readLine(strippingNewline: true))
        }
        return try checked(
            Prompt.readHidden(
                question, limit: maxLength, interruption: try Signals.interruption().descriptor))
    }

    /// Asks twice on a terminal, since what is typed is not shown.
    static func readNew() throws(RingbackError) -> String {
        let first = try read("New passphrase (it is not shown): ")
        guard Console.Stream.input.isTerminal else { return first }
        guard try read("The same again: ") == first else {
            throw RingbackError(.cancelled, "The two are not the same. Nothing was changed.")
        }
        return first
    }

    private static func checked(_ line: String?) throws(RingbackError) -> String {
        guard let line, !line.isEmpty else {
            let way = " It is asked for on a terminal; else it is the first line of standard input."
            throw RingbackError(
                .cancelled, "No passphrase was read." + (Console.Stream.input.isTerminal ? "" : way))
        }
        guard line.utf8.count <= maxLength else {
            throw RingbackError(.cancelled, "The passphrase is longer than \(maxLength) bytes.")
        }
        return line
    }
}
