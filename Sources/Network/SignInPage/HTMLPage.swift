internal import Cryptography
public import RingbackBase

/// A whole page: complete without a style, a script or an image. What is not constant text goes through `escaped`.
public struct HTMLPage: Sendable {
    /// The colour above the page: whether what it tells is good or bad.
    public enum Tone: String, Sendable {
        case plain, good, bad
    }

    private let heading: String
    private let language: PageLanguage
    private let tone: Tone
    private let content: String

    /// `heading` is constant text, `content` HTML below it.
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

    /// The account and the host of its provider in one line. An account may have any name, so the host, if it is known,
    /// always stands beside it.
    public static func place(_ account: String, at host: String?, in language: PageLanguage) -> String {
        let at = host.map { " \(language == .russian ? "на" : "at") \(strong($0))" } ?? ""
        return "<p class=\"place\">\(strong(account))\(at)</p>\n"
    }

    /// An address or a name, isolated because its writing direction is unknown.
    public static func strong(_ text: String) -> String { "<b><bdi>\(escaped(text))</bdi></b>" }

    /// An arrow that goes round and comes back. It says nothing to a screen reader, since the name is beside it.
    private static let mark = """
        <svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2.4" stroke-linecap="round" \
        stroke-linejoin="round" aria-hidden="true"><path d="M5.6 8.2a8 8 0 1 1-1.4 5.6"/><path d="M5 3.4v5h5"/>\
        <circle cx="12" cy="12.2" r="1.6" fill="currentColor" stroke="none"/></svg>
        """

    /// For an element or an attribute. Control characters and those that change the direction of the text become
    /// U+FFFD.
    public static func escaped(_ text: String) -> String {
        let shown = text.unicodeScalars.map { scalar -> Unicode.Scalar in
            let isHidden = scalar.properties.generalCategory == .control || scalar.properties.isBidiControl
            return isHidden ? "\u{FFFD}" : scalar
        }
        return Markup.escaped(String(String.UnicodeScalarView(shown)))
    }
}

/// The look of the pages. It names no address, so that the policy can forbid every request. Sizes are in rem, so that
/// the browser's font size and zoom hold; at 320 pixels (1280 at a zoom of 400 %) nothing is wider than the window.
public enum PageStyle {
    public static let text = """
        :root{color-scheme:light dark;--page:#e2e5ec;--card:#f5f6f9;--field:#fff;--tint:#d3dcee;--text:#1b2030;--soft:#4a5263;--line:#c9ced9;--good:#1a7f45;--bad:#b3261e}
        @media(prefers-color-scheme:dark){:root{--page:#121419;--card:#1e2128;--field:#2b303a;--tint:#3f4d68;--text:#eceef2;--soft:#b9bfcb;--line:#3b414d;--good:#4cc38a;--bad:#ff8a80}}
        *{box-sizing:border-box}
        body{margin:0;padding:1.5rem 1rem;background:var(--page);color:var(--text);font:1rem/1.55 system-ui,sans-serif;overflow-wrap:anywhere}
        header,main{max-width:34rem;margin:0 auto}
        header{display:flex;align-items:center;gap:.6rem;padding:0 .25rem .8rem;font-weight:600}
        svg{width:1.75rem;height:1.75rem;flex:none}
        main{padding:1.5rem;background:var(--card);border:1px solid var(--line);border-top:.3rem solid var(--soft);border-radius:.6rem}
        main.good{border-top-color:var(--good)}
        main.bad{border-top-color:var(--bad)}
        h1{margin:0;font-size:1.6rem;line-height:1.25}
        p{margin:1rem 0 0}
        .place{margin-top:.4rem;color:var(--soft);font-size:.9rem}
        .place b,.words b{color:var(--text)}
        form{margin:1.1rem 0 0}
        label{display:block;margin:.9rem 0 .3rem;font-weight:600}
        input,button,a.button{width:100%;min-height:2.8rem;padding:.5rem .8rem;border:1px solid transparent;border-radius:1.4rem;font:inherit}
        input{border-color:var(--soft);border-radius:.4rem;background:var(--field);color:var(--text)}
        input[aria-invalid]{border-color:var(--bad);box-shadow:inset 0 0 0 1px var(--bad)}
        button,a.button{display:block;margin:1.1rem 0 0;background:var(--text);color:var(--card);font-weight:600;text-align:center;text-decoration:none;cursor:pointer}
        button[disabled]{opacity:.5;cursor:default}
        a.button,button.quiet{background:var(--tint);color:var(--text)}
        .providers{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(14rem,100%),1fr));gap:.5rem;margin:1rem 0 0}
        .providers a{margin:0;padding:.5rem}
        .providers a:first-child:nth-last-child(odd){grid-column:1/-1}
        a{color:inherit}
        :focus-visible{outline:.2rem solid var(--good);outline-offset:.1rem}
        .wrong{color:var(--bad);font-weight:600}
        input+.wrong{margin-top:.3rem}
        .words{padding:.5rem .8rem;border:1px dashed var(--soft);border-radius:.4rem;color:var(--soft);font-size:.95rem}
        .words b{white-space:nowrap}
        .known{padding:0;border:0;font-size:.9rem}
        .hint{margin:.3rem 0 .5rem;color:var(--soft);font-size:.9rem}
        .or{display:flex;align-items:center;gap:.8rem;margin:1rem 0 -.4rem;color:var(--soft)}
        .or::before,.or::after{content:"";flex:1;border-top:1px solid var(--line)}
        section+section,nav{margin:1.5rem 0 0;padding:.9rem 0 0;border-top:1px solid var(--line)}
        h2{margin:0 0 .3rem;font-size:1rem}
        ul{margin:0;padding:0;list-style:none}
        li{padding:.2rem 0}
        @media(max-width:30rem){body{padding:.8rem .5rem}main{padding:1rem}}

        """

    /// By which a policy allows the stylesheet: the digest of its text.
    public static let source = "sha256-\(Base64.encode(Digest.sha256(text)))"
}
