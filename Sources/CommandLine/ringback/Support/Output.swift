import Glibc
import StrictJSON
import Terminal

/// Where a verb prints its text. On a terminal, notes, fields and usage are broken between words at its width; results,
/// which may be copied, and whatever goes into a pipe are not.
enum Output {
    /// Prints a result. If it cannot be written, the process exits with status 1.
    static func line(_ text: String) {
        guard Console.write(text + "\n", to: .output) else {
            note("ringback: the output cannot be written")
            exit(1)
        }
    }

    /// A result as JSON, on one line, whatever is in it.
    static func json(_ json: JSON) { line(json.visibleText) }

    /// Prints a result in columns, their names in bold.
    ///
    /// - Parameter below: how many of the last cells are put below their row on a terminal that is too narrow.
    static func table(_ table: Table, below: Int = 0) {
        for (index, line) in table.lines(columns: Console.Stream.output.columns, below: below).enumerated() {
            self.line(index == 0 ? Style.bold.apply(line, on: .output) : line)
        }
    }

    /// Prints text that is no result. It may have several lines. What comes from outside must be sanitized before.
    static func note(_ text: String) {
        _ = Console.write(TextWrap.wrapped(text, columns: Console.Stream.errors.columns) + "\n", to: .errors)
    }

    /// Prints a sentence that is a result.
    ///
    /// - Parameter indent: blanks before each further line.
    static func sentence(_ text: String, indent: Int = 0) {
        line(TextWrap.wrapped(text, columns: Console.Stream.output.columns, indent: indent))
    }

    /// Prints a label and a text, aligned; without a text, nothing.
    static func field(_ label: String, _ text: String?) {
        guard let text, !text.isEmpty else { return }
        let padding = String(repeating: " ", count: max(1, 11 - label.utf8.count))
        sentence(label + padding + Sanitizer.line(text, limit: 1_000), indent: 11)
    }
}
