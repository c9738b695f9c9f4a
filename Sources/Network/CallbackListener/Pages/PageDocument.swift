internal import SignInPage

/// A page of the listener as HTML.
struct PageDocument {
    private let content: PageContent
    private let language: PageLanguage

    init(_ content: PageContent, in language: PageLanguage) {
        self.content = content
        self.language = language
    }

    var html: String {
        let sentences = language.sentences(of: content.page)
        let text = "\(facts)<p>\(sentences.event)</p>\n<p>\(sentences.advice)</p>\n"
        return HTMLPage(sentences.heading, in: language, tone: tone, content: text).html
    }

    /// The facts about the sign-in; empty if they are not known.
    private var facts: String {
        guard let signIn = content.signIn else { return "" }
        let words = language.words
        var rows = [(name: words.account, value: signIn.account)]
        if let host = signIn.providerHost { rows.append((words.provider, host)) }
        return HTMLPage.facts(rows)
    }

    private var tone: HTMLPage.Tone {
        switch content.page {
        case .done, .noted: .good
        case .failed, .denied, .expired, .refused, .wrongIssuer: .bad
        case .outdated, .used, .notFound: .plain
        }
    }
}
