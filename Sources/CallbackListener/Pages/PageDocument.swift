// Everything that is not constant text goes through `escaped`.

/// A page as HTML: complete without a style, a script or an image.
struct PageDocument {
    private let content: PageContent
    private let language: PageLanguage

    init(_ content: PageContent, in language: PageLanguage) {
        self.content = content
        self.language = language
    }

    var html: String {
        let sentences = language.sentences(of: content.page)
        return """
            <!DOCTYPE html>
            <html lang="\(language.rawValue)">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta name="color-scheme" content="light dark">
            <title>\(sentences.heading) - Ringback</title>
            <style>\(PageStyle.text)</style>
            </head>
            <body>
            <header>\(PageDocument.mark)<span>Ringback</span></header>
            <main\(tone)>
            <h1>\(sentences.heading)</h1>
            \(facts)<p>\(sentences.event)</p>
            <p>\(sentences.advice)</p>
            </main>
            </body>
            </html>

            """
    }

    /// Whose sign-in it was; empty where that is not known.
    private var facts: String {
        guard let signIn = content.signIn else { return "" }
        let words = language.words
        var rows = [(words.account, signIn.account)]
        if let host = signIn.providerHost { rows.append((words.provider, host)) }
        let items = rows.map { "<div><dt>\($0)</dt><dd><bdi>\(PageDocument.escaped($1))</bdi></dd></div>\n" }
        return "<dl>\n\(items.joined())</dl>\n"
    }

    private var tone: String {
        switch content.page {
        case .done, .noted: " class=\"good\""
        case .failed, .denied, .expired: " class=\"bad\""
        case .outdated, .used, .notFound: ""
        }
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
    static func escaped(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            default:
                let isHidden = scalar.properties.generalCategory == .control || scalar.properties.isBidiControl
                escaped.unicodeScalars.append(isHidden ? "\u{FFFD}" : scalar)
            }
        }
        return escaped
    }
}
