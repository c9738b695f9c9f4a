import RingbackBase
import SignInPage
import Testing

@Suite struct `A form of the sign-in page` {
    private func read(_ text: String) throws(PageForm.Failure) -> PageForm { try PageForm(parsing: Array(text.utf8)) }

    @Test func `is read with its own fields`() throws {
        let form = try read("action=password&token=t&email=+mira%40example.org+&password=+a+")
        #expect(form.action == .password && form.email == "mira@example.org" && form.phone == nil)
        // Spaces are part of a password.
        #expect(form.password?.revealed() == " a " && form.token.revealed() == "t")
        #expect(try read("action=password&email=&password=").password == nil)
        #expect(try read("action=code&code=+123+456+").code?.revealed() == "123 456")
    }

    @Test(arguments: [
        "", "action", "action=", "action=Password", "token=t", "action=password&action=code&code=1",
        "action=code&code=1&code=2", "action=code&email=a", "action=resend&code=1", "action=skip&x=1",
        "action=code&code=%", "action=code&code=%00", "action=code&code=%ff", "action=code&code=a b",
        "action=code&code=" + String(repeating: "1", count: 1_025), "a&b&c&d&e&f&g&h&i",
    ])
    func `that no page of ours sends is refused`(text: String) {
        #expect(throws: PageForm.Failure.self) { try read(text) }
    }

    @Test func `has for every action the fields of one screen`() throws {
        for action in PageForm.Action.allCases {
            #expect(try read("action=\(action.rawValue)&token=t").action == action)
        }
    }
}
