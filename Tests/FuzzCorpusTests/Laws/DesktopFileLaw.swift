import RingbackBase
import SchemeRegistration

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
