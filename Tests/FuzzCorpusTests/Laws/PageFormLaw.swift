import RingbackBase
import SignInPage

/// Forms of the sign-in page: only the fields of their own action, each once.
enum PageFormLaw {
    static func check(_ bytes: [UInt8]) throws {
        guard let form = try? PageForm(parsing: bytes) else { return }
        let pairs = try FormEncoding.parse(bytes)
        let values = Dictionary(pairs.map { ($0.name, $0.value) }) { first, _ in first }
        try hold("a field is there once", values.count == pairs.count)
        try hold("the action is the one that was sent", values["action"] == form.action.rawValue)
        try hold("a form without a token has an empty one", form.token.revealed() == values["token"] ?? "")
        try hold("no value is longer than 1,024 bytes", pairs.allSatisfy { $0.value.utf8.count <= 1_024 })
        for typed in [form.email, form.phone, form.factor, form.code?.revealed()].compactMap({ $0 }) {
            let hasNoSpace = typed.first?.isWhitespace == false && typed.last?.isWhitespace == false
            try hold("what was typed has no space around it", hasNoSpace)
        }
        let password = values["password"].flatMap { $0.isEmpty ? nil : $0 }
        try hold("a password stays as it was typed", form.password?.revealed() == password)
        let written = FormEncoding.encode(pairs.map { ($0.name, $0.value) }, spaceAsPlus: true)
        let again = try PageForm(parsing: Array(written.utf8))
        try hold("what is written is read as the same", said(again) == said(form))
        try hold("a field more is refused", (try? PageForm(parsing: bytes + Array("&x=1".utf8))) == nil)
    }

    private static func said(_ form: PageForm) -> [String?] {
        [
            form.action.rawValue, form.token.revealed(), form.email, form.phone, form.factor,
            form.password?.revealed(), form.code?.revealed(),
        ]
    }
}
