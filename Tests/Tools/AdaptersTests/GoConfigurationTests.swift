import Testing

@testable import Adapters

@Suite struct `The value of GOAUTH` {
    private func value(_ text: String) -> GoConfiguration { GoConfiguration(value: text.utf8) }

    @Test(arguments: [
        ("netrc\n", "netrc; /opt/ringback goauth"), ("", "/opt/ringback goauth"),
        ("git /home/ada;netrc", "git /home/ada; netrc; /opt/ringback goauth"),
        ("/usr/bin/ringback goauth; netrc", "netrc; /opt/ringback goauth"),
        (" ;; /opt/ringback   goauth ;", "/opt/ringback goauth"),
    ])
    func `gets Ringback as the last command, once`(former: String, wanted: String) {
        #expect(value(former).adding("/opt/ringback") == wanted)
        #expect(value(wanted).adding("/opt/ringback") == wanted)
    }

    @Test(arguments: ["/a b/ringback", "/a;b/ringback", "/a'b/ringback", "/a\nb/ringback"])
    func `gets no path that go would split`(path: String) { #expect(value("netrc").adding(path) == nil) }

    @Test func `loses only what was added`() {
        #expect(value("netrc; /opt/ringback goauth\n").removal == .unset)
        #expect(value("/opt/ringback goauth").removal == .unset)
        #expect(value("git /a; /opt/ringback goauth; netrc").removal == .set("git /a; netrc"))
        for other in ["netrc", "off", "ringback goauth", "/opt/ringback goauth --socket /a", "/opt/other goauth"] {
            #expect(value(other).removal == .nothing)
        }
    }

    @Test func `says whether Ringback is asked`() {
        #expect(value("netrc; ringback goauth").isAsked && value("/opt/ringback goauth").isAsked)
        #expect(!value("netrc").isAsked && !value("/opt/other goauth").isAsked)
        #expect(value("off\n").isOff && !value("netrc").isOff)
    }
}
