import RingbackBase
import Testing

@testable import SchemeRegistration

@Suite struct `The list of default applications` {
    private static let ours = "ringback-app.desktop"
    private let scheme: URLScheme

    init() throws { scheme = try URLScheme(parsing: "app") }

    private static let texts = [
        "", "\n", "# a comment\n",
        "[Default Applications]\ntext/html=firefox.desktop\n",
        "[Default Applications]\nx-scheme-handler/app=a.desktop;b.desktop;\n",
        "[Added Associations]\nx-scheme-handler/app=c.desktop;\n\n[Default Applications]\ntext/html=x.desktop;\n\n",
        "[Default Applications]\n\n[Removed Associations]\nx-scheme-handler/app=d.desktop;\n",
        "[Default Applications]\nx-scheme-handler/apple=e.desktop\n# the end",
        "[Added Associations]\ntext/plain=f.desktop",
        "[Default Applications]\r\ntext/html=firefox.desktop\r\n",
    ]

    @Test(arguments: texts) func `puts a handler first and changes nothing else`(text: String) {
        var list = MimeAppsList(text)
        let before = list.defaults(for: scheme) ?? []
        list.prefer(Self.ours, for: scheme)
        #expect(list.defaults(for: scheme) == [Self.ours] + before)
        var again = list
        again.prefer(Self.ours, for: scheme)
        #expect(again == list)
        // Every line that was there is still there, but the type's own in the group of defaults.
        let rest = text.split(separator: "\n").filter { !$0.hasPrefix("x-scheme-handler/app=a.desktop") }
        for line in rest { #expect(list.text.contains(line), "\(line)") }
        #expect(list.text.split(separator: "\n").count <= rest.count + 2)
    }

    @Test(arguments: texts) func `a handler that goes leaves what was there before it`(text: String) {
        var list = MimeAppsList(text)
        let before = list.defaults(for: scheme)
        list.prefer(Self.ours, for: scheme)
        list.remove(Self.ours, for: scheme)
        #expect(list.defaults(for: scheme) == before)
        func lines(_ text: String) -> [Substring] { text.split(separator: "\n") }
        let kept = lines(text).filter { $0 != "[Default Applications]" }
        #expect(lines(list.text).filter { $0 != "[Default Applications]" } == kept)
        if text.isEmpty { #expect(list.isBlank) }
    }

    @Test func `one that was put first later stays first`() {
        var list = MimeAppsList("[Default Applications]\nx-scheme-handler/app=new.desktop;\(Self.ours);old.desktop;\n")
        list.remove(Self.ours, for: scheme)
        #expect(list.text == "[Default Applications]\nx-scheme-handler/app=new.desktop;old.desktop;\n")
        let before = list
        list.remove(Self.ours, for: scheme)
        #expect(list == before)
    }

    @Test func `a new line stands with the other defaults`() {
        var list = MimeAppsList("[Default Applications]\na/b=c.desktop\n\n[Added Associations]\nd/e=f.desktop\n")
        list.prefer(Self.ours, for: scheme)
        #expect(
            list.text == """
                [Default Applications]
                a/b=c.desktop
                x-scheme-handler/app=ringback-app.desktop;

                [Added Associations]
                d/e=f.desktop

                """)
    }
}
