import Cryptography
import OAuth
import RingbackBase
import SchemeRegistration
import SignInPage

@testable import Records

/// JSON from anywhere: what was read can be written and read again, and no reader of the same bytes sees another thing.
enum JSONLaw {
    static func check(_ bytes: [UInt8]) throws {
        guard let value = try? JSON(parsing: bytes) else { return }
        try hold("JSON is UTF-8", String(validating: bytes, as: UTF8.self) != nil)
        let written = value.serialized()
        try hold("what is written has no control character", written.allSatisfy { $0 >= 0x20 && $0 != 0x7F })
        let again = try JSON(parsing: written)
        try hold("what is written is read as the same", again.serialized() == written)
        if isFinite(value) { try hold("no value changes on the way", again == value) }
        try hold("space around it means nothing", JSON(parsing: [0x20, 0x0A] + bytes + [0x0D, 0x09]) == value)
        var values = 0
        try walk(value, depth: 0, &values)
        try hold("there are at most 20000 values", values <= 20_000)
        if value.object != nil || value.array != nil {
            try hold("half a value is none", (try? JSON(parsing: written.dropLast())) == nil)
        }
    }

    private static func walk(_ value: JSON, depth: Int, _ values: inout Int) throws {
        values += 1
        switch value {
        case .object(let object):
            try hold("there are at most 32 levels", depth < 32)
            let names = object.names.map { Array($0.utf8) }
            try hold("no name is there twice", Set(names).count == names.count)
            for member in object.members {
                try hold("a name finds its value", object[member.name] == member.value || !isFinite(member.value))
                try walk(member.value, depth: depth + 1, &values)
            }
        case .array(let elements):
            try hold("there are at most 32 levels", depth < 32)
            for element in elements { try walk(element, depth: depth + 1, &values) }
        default: break
        }
    }

    /// Numbers beyond Double's range are written as null.
    private static func isFinite(_ value: JSON) -> Bool {
        switch value {
        case .double(let number): number.isFinite
        case .array(let elements): elements.allSatisfy(isFinite)
        case .object(let object): object.members.allSatisfy { isFinite($0.value) }
        default: true
        }
    }
}

/// Forms and queries: decoded once, encoded again, they say the same.
enum FormLaw {
    static func check(_ bytes: [UInt8]) throws {
        guard let pairs = try? FormEncoding.parse(bytes) else { return }
        try hold("there are at most 100 pairs", pairs.count <= 100)
        try hold("a form is printable ASCII", bytes.allSatisfy { $0 > 0x20 && $0 < 0x7F })
        for pair in pairs {
            try hold("no NUL comes out", !pair.name.utf8.contains(0) && !pair.value.utf8.contains(0))
        }
        let plain = pairs.map { ($0.name, $0.value) }
        for spaceAsPlus in [false, true] {
            let text = FormEncoding.encode(plain, spaceAsPlus: spaceAsPlus)
            try hold("what is written is printable ASCII", text.isPrintableASCII && !text.contains(" "))
            try hold("what is written is read as the same", FormEncoding.parse(text) == pairs)
        }
        // A pair more at the end changes nothing before it.
        if pairs.count < 100 {
            let longer = try FormEncoding.parse(bytes + Array("&state=a%20b+c".utf8))
            try hold("what follows changes nothing", longer == pairs + [FormEncoding.Pair("state", "a b c")])
        }
    }
}

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

/// Callback URLs: the parts are the text's own, and a response is one state with one of a code and an error.
enum CallbackLaw {
    static func check(_ bytes: [UInt8]) throws {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let url = try? WebURL(parsing: text) else { return }
        try checkParts(of: url, text)
        try checkOrigin(of: url)
        let response = try? AuthorizationResponse(parsing: url)
        if url.fragment == nil, let query = url.query {
            let form = try? AuthorizationResponse(parsingForm: Array(query.utf8))
            try hold("a form means what the same query means", form == response)
        }
        guard let response else { return }
        try checkMeaning(of: response, url)
    }

    private static func checkParts(of url: WebURL, _ text: String) throws {
        try hold("a URL is printable ASCII", text.isPrintableASCII && !text.contains(" "))
        try hold("a URL keeps its text", url.text.utf8.elementsEqual(text.utf8))
        try hold("the scheme comes first", text.lowercased().hasPrefix(url.scheme + ":"))
        let tail = url.path + (url.query.map { "?" + $0 } ?? "") + (url.fragment.map { "#" + $0 } ?? "")
        try hold("path, query and fragment are the end", text.hasSuffix(tail))
        try hold("the query has no fragment", url.query?.contains("#") != true)
        try hold("the path has neither", !url.path.contains("?") && !url.path.contains("#"))
        if let host = url.host {
            try hold("a host is only a host", !host.contains { "/?#@\\[]".contains($0) })
            try hold("behind a host the path is absolute", url.path.isEmpty || url.path.hasPrefix("/"))
        }
        try hold("a port is a port", (0...65_535).contains(url.port ?? 0))
    }

    private static func checkOrigin(of url: WebURL) throws {
        if url.isSecure {
            let host = url.host ?? ""
            let isLocal = host == "localhost" || host == "::1" || host.hasPrefix("127.")
            try hold("secrets go to https or loopback", url.scheme == "https" || (url.scheme == "http" && isLocal))
        }
        guard url.scheme == "https" || url.scheme == "http" else { return }
        try hold("a web URL has a host", url.host?.isEmpty == false)
        let origin = try WebURL(parsing: url.origin)
        try hold("an origin is its own origin", origin.origin == url.origin)
        try hold("an origin is at the same host", origin.host == url.host && origin.isLoopback == url.isLoopback)
        try hold("an origin has no more", origin.path.isEmpty && origin.query == nil && origin.fragment == nil)
    }

    private static func checkMeaning(of response: AuthorizationResponse, _ url: WebURL) throws {
        let pairs = try FormEncoding.parse(Array((url.query ?? "").utf8), needed: ["code", "state", "iss", "error"])
        let all =
            pairs
            + (try FormEncoding.parse(Array((url.fragment ?? "").utf8), needed: ["code", "state", "iss", "error"]))
        func values(_ name: String) -> [String] { pairs.filter { $0.name == name }.map(\.value) }
        let tokens: Set<String> = ["access_token", "refresh_token", "id_token"]
        try hold("no token arrives in a URL", !all.contains { tokens.contains($0.name) })
        try hold("there is exactly one state", values("state") == [response.state.revealed()])
        try hold("a state is not empty", !response.state.isEmpty)
        try hold("an issuer is there once or not", values("iss") == [response.issuer].compactMap(\.self))
        try hold("the key is the state's", response.stateKey == Digest.sha256(response.state.revealedBytes()))
        switch response.outcome {
        case .code(let code):
            try hold("there is exactly one code", values("code") == [code.revealed()])
            try hold("there is no error beside a code", values("error").allSatisfy(\.isEmpty))
            try hold("a code is 1 to 8192 printable characters", code.revealed().isPrintableASCII)
            try hold("a code is not too long", (1...8_192).contains(code.count))
        case .error(let refusal):
            try hold("there is exactly one error", values("error").count == 1)
            try hold("there is no code beside an error", values("code").allSatisfy(\.isEmpty))
            try hold("an error's code is printable ASCII", refusal.code.isPrintableASCII)
            try hold("an error's text is one visible line", refusal.message?.isVisibleLine != false)
            try hold("a browser's redirect ends no session", !refusal.endsGrant)
        }
        if let issuer = response.issuer {
            try hold("another issuer is refused", !response.check(issuer: issuer + "/", isAdvertised: false))
            if !issuer.contains("{") {
                try hold("its own issuer is admitted", response.check(issuer: issuer, isAdvertised: true))
            }
        } else {
            let isError = if case .error = response.outcome { true } else { false }
            try hold(
                "a promised issuer must be there, but for an error",
                response.check(issuer: "https://a", isAdvertised: true) == isError)
        }
    }
}

/// The field `Accept-Language`: which of the languages of a page a browser gets.
enum AcceptLanguageLaw {
    private static let offered = ["en", "ru", "de"]

    static func check(_ bytes: [UInt8]) throws {
        let text = String(decoding: bytes, as: UTF8.self)
        let best = LanguagePreference(parsing: [text]).best(of: offered)
        try hold("only what is offered is chosen", best.map { offered.contains($0) } ?? true)
        try hold("what is chosen is named", best == nil || text.contains("*") || text.lowercased().contains(best ?? ""))
        // A list may be cut into lines at its commas.
        let lines = text.utf8.split(separator: UInt8(ascii: ",")).map { String(decoding: $0, as: UTF8.self) }
        try hold("lines are one list", LanguagePreference(parsing: lines).best(of: offered) == best)
        try hold(
            "letter case means nothing", LanguagePreference(parsing: [text.asciiUppercased]).best(of: offered) == best)
        let refusal = "\(text),en;q=0,ru;q=0,de;q=0"
        if let still = LanguagePreference(parsing: [refusal]).best(of: offered) {
            try hold("a refusal takes the asterisk away", text.lowercased().contains(still))
        }
        for language in offered {
            let alone = LanguagePreference(parsing: [text]).best(of: [language])
            try hold("a language alone is chosen or not", alone == nil || alone == language)
            if language == best { try hold("the best one is acceptable alone", alone == language) }
        }
    }
}

extension String {
    fileprivate var asciiUppercased: String {
        String(decoding: utf8.map { (0x61...0x7A).contains($0) ? $0 & 0xDF : $0 }, as: UTF8.self)
    }
}

/// The audit log read back: an entry is one line that a terminal may show, and says the same when it is written again.
enum AuditLaw {
    static func check(_ bytes: [UInt8]) throws {
        let all = AuditReader.entries(in: bytes, since: nil, account: nil, limit: .max)
        let lines = bytes.split(separator: 0x0A)
        try hold("an entry is a line", all.count <= lines.count)
        let some = AuditReader.entries(in: bytes, since: nil, account: nil, limit: 3)
        try hold("the newest are the last", some.map(\.text) == all.suffix(3).map(\.text))
        for since in [0, 1_800_000_000] {
            let found = AuditReader.entries(in: bytes, since: since, account: "work", limit: .max)
            for entry in found {
                try hold("an entry is of the account", entry["account"]?.string == "work")
                try hold("an entry is of the time", (entry["last"]?.integer ?? entry["time"]?.integer ?? -1) >= since)
            }
        }
        for line in lines {
            guard let entry = AuditLine.entry(of: line) else { continue }
            let written = AuditLine.bytes(of: entry)
            try hold("a line ends once", written.firstIndex(of: 0x0A) == written.count - 1)
            let text = String(decoding: written.dropLast(), as: UTF8.self)
            try hold("a line hides nothing", text.unicodeScalars.allSatisfy(isVisible))
            guard let again = AuditLine.entry(of: written.dropLast()) else {
                try hold("only a long line is lost", written.count > 32_768)
                continue
            }
            try hold(
                "what is written is read as the same",
                JSON.object(again).serialized() == JSON.object(entry).serialized())
        }
    }

    private static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: false
        default: true
        }
    }
}

/// Files of desktops, which other programs and people write: what we put into one is read back as it was, and nothing else
/// in it is touched.
enum DesktopFileLaw {
    private static let ours = "ringback-org.example.app.desktop"

    static func check(_ bytes: [UInt8]) throws {
        let text = String(decoding: bytes, as: UTF8.self)
        try checkHandler(text)
        try checkList(text)
        try checkPath(text)
    }

    /// A file that is read as ours is the same when it is written again.
    private static func checkHandler(_ text: String) throws {
        let file = DesktopFile(reading: text)
        try hold("a command has a program", file.arguments?.isEmpty != true)
        guard let handler = HandlerFile(reading: text), !handler.program.utf8.contains(0x0D) else { return }
        let again = HandlerFile(reading: handler.text)
        try hold(
            "our file is read as it was written", again?.scheme == handler.scheme && again?.program == handler.program)
    }

    /// Any path is one program, and nothing of it is an argument.
    private static func checkPath(_ text: String) throws {
        let path = "/" + text
        // The specification has no way to write these.
        guard !path.utf8.contains(0) else { return }
        let scheme = try URLScheme(parsing: "org.example.app")
        let written = HandlerFile(scheme: scheme, program: path)
        try hold("a path is read back", HandlerFile(reading: written.text)?.program == path)
        let arguments = DesktopFile(reading: written.text).arguments ?? []
        try hold("the link is an argument of its own", arguments.count == 3 && arguments.last == "%u")
        try hold("a plain path has no space", !HandlerFile.isPlain(path) || !path.contains(" "))
    }

    private static func checkList(_ text: String) throws {
        let scheme = try URLScheme(parsing: "org.example.app")
        var list = MimeAppsList(text)
        let before = list.defaults(for: scheme) ?? []
        list.prefer(ours, for: scheme)
        let others = before.filter { $0 != ours }
        try hold("who is put first is first, and the others follow", list.defaults(for: scheme) == [ours] + others)
        var again = list
        again.prefer(ours, for: scheme)
        try hold("once is enough", again == list)
        list.remove(ours, for: scheme)
        try hold("who goes leaves the others", (list.defaults(for: scheme) ?? []) == others)
        guard before.isEmpty else { return }
        let kept = { (text: String) in lines(text).filter { !$0.hasPrefix("[Default Applications]") && !$0.isEmpty } }
        let isTyped = lines(text).contains { $0.hasPrefix("x-scheme-handler/org.example.app=") }
        try hold("no other line is touched", isTyped || kept(list.text) == kept(text))
    }

    private static func lines(_ text: String) -> [String] {
        text.utf8.split(separator: 0x0A).map { String(Substring($0)) }
    }
}
