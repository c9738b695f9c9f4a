// The whole page around what a screen says. Everything that is not constant text goes through `escaped`.

internal import Encodings

/// A page as HTML: complete without a style, a script or an image.
public struct HTMLPage: Sendable {
    /// The colour above the page: whether what it tells is good or bad.
    public enum Tone: String, Sendable {
        case plain, good, bad
    }

    private let heading: String
    private let language: PageLanguage
    private let tone: Tone
    private let content: String

    /// - Parameters:
    ///   - heading: constant text.
    ///   - content: HTML below the heading.
    public init(_ heading: String, in language: PageLanguage, tone: Tone = .plain, content: String) {
        self.heading = heading
        self.language = language
        self.tone = tone
        self.content = content
    }

    public var html: String {
        """
        <!DOCTYPE html>
        <html lang="\(language.rawValue)">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <title>\(heading) - Ringback</title>
        <style>\(PageStyle.text)</style>
        </head>
        <body>
        <header>\(HTMLPage.mark)<span>Ringback</span></header>
        <main\(tone == .plain ? "" : " class=\"\(tone.rawValue)\"")>
        <h1>\(heading)</h1>
        \(content)</main>
        </body>
        </html>

        """
    }

    /// Names and values, such as the account, as a list.
    public static func facts(_ rows: [(name: String, value: String)]) -> String {
        let items = rows.map { "<div><dt>\($0.name)</dt><dd><bdi>\(escaped($0.value))</bdi></dd></div>\n" }
        return "<dl>\n\(items.joined())</dl>\n"
    }

    /// The product's mark: an arrow that goes round and comes back. It says nothing to a screen reader, since the name
    /// is beside it.
    private static let mark = """
        <svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2.4" stroke-linecap="round" \
        stroke-linejoin="round" aria-hidden="true"><path d="M5.6 8.2a8 8 0 1 1-1.4 5.6"/><path d="M5 3.4v5h5"/>\
        <circle cx="12" cy="12.2" r="1.6" fill="currentColor" stroke="none"/></svg>
        """

    /// The text as the content of an element or an attribute. Control characters and those that change the direction of
    /// the text become U+FFFD.
    public static func escaped(_ text: String) -> String {
        let shown = text.unicodeScalars.map { scalar -> Unicode.Scalar in
            let isHidden = scalar.properties.generalCategory == .control || scalar.properties.isBidiControl
            return isHidden ? "\u{FFFD}" : scalar
        }
        return Markup.escaped(String(String.UnicodeScalarView(shown)))
    }
}
