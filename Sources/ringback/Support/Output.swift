import Glibc
import StrictJSON
import Terminal

/// Where a verb's words go.
enum Output {
    /// A result. A result that cannot be written must not look like success.
    static func line(_ text: String) {
        guard Console.write(text + "\n", to: .output) else {
            note("ringback: the output cannot be written")
            exit(1)
        }
    }

    /// A result as JSON, on one line, whatever is in it.
    static func json(_ json: JSON) { line(json.visibleText) }

    /// A result in columns, their names in bold.
    static func table(_ table: Table) {
        for (index, line) in table.lines.enumerated() {
            self.line(index == 0 ? Style.bold.apply(line, on: .output) : line)
        }
    }

    /// Anything that is no result. May hold several lines; what comes from outside must be sanitized in it.
    static func note(_ text: String) { _ = Console.write(text + "\n", to: .errors) }

    /// Label and text, aligned; without a text, nothing.
    static func field(_ label: String, _ text: String?) {
        guard let text, !text.isEmpty else { return }
        let padding = String(repeating: " ", count: max(1, 11 - label.utf8.count))
        line(label + padding + Sanitizer.line(text))
    }
}
