/// A screen as HTML. Every form of the sign-in page is written here.
public struct ScreenDocument: Sendable {
    private let content: ScreenContent
    private let text: ScreenText
    private let language: PageLanguage

    public init(_ content: ScreenContent, in language: PageLanguage) {
        self.content = content
        self.language = language
        text = ScreenText.of(language)
    }

    public var html: String {
        HTMLPage(heading, in: language, tone: tone, content: head + body).html
    }

    /// After so many seconds the browser is to load the screen again; nil if not. A form is left when the page's time is
    /// over: later, another program may have the port, and would get what is typed.
    public var refresh: Int? {
        switch content.screen {
        case .wait: 1
        // What is typed would be lost, so only a screen without a field counts down.
        case .resend where content.secondsLeft > 0: min(content.secondsLeft, 5)
        case .done, .unused, .ended, .elsewhere: nil
        default: max(0, content.lifetime) + 1
        }
    }

    /// What the login screen says if somebody else signs in than the account's user.
    public static func otherUser(in language: PageLanguage) -> String { ScreenText.of(language).otherUser }

    /// What a screen says if the project requires a pause of some seconds.
    public static func wait(_ seconds: Int, in language: PageLanguage) -> String {
        let text = ScreenText.of(language)
        return "\(text.waitAtLeast) \(seconds) \(text.seconds)"
    }

    /// What a screen adds after a code that is wrong or used up.
    public static func usedCode(in language: PageLanguage) -> String { ScreenText.of(language).usedCode }

    /// What a screen says if the form before it belonged to no step.
    public static func unused(in language: PageLanguage) -> String { ScreenText.of(language).unusedAdvice }

    private var tone: HTMLPage.Tone {
        switch content.screen {
        case .done: .good
        case .unused, .ended: .bad
        default: .plain
        }
    }

    private var heading: String {
        switch content.screen {
        case .login: text.signIn
        case .signUp: text.signUp
        case .forgotten: text.forgotten
        case .mail: text.byMail
        case .sms: text.bySMS
        case .code: text.enterCode
        case .resend: text.sendAgain
        case .wait: text.oneMoment
        case .factor: text.secondFactor
        case .newPassword: text.newPassword
        case .done: text.signedIn
        case .unused: text.unused
        case .ended: text.ended
        case .elsewhere: text.elsewhere
        }
    }

    /// Whose sign-in it is, the two words, and what was wrong with the whole form.
    private var head: String {
        guard content.screen != .elsewhere else { return "" }
        var head = HTMLPage.facts([(text.account, content.account), (text.project, content.host)])
        if ![.done, .unused, .ended].contains(content.screen) {
            head += "<p class=\"words\">\(text.words) <b>\(HTMLPage.escaped(content.words))</b></p>\n"
        }
        if let complaint = content.complaint, complaint.field == nil {
            head += "<p class=\"wrong\" role=\"alert\">\(HTMLPage.escaped(complaint.sentence))</p>\n"
        }
        if content.offersSwitch { head += form(.switchUser, "", text.switchUser) }
        return head
    }

    private var body: String {
        switch content.screen {
        case .login: login
        case .signUp:
            form(.signUp, contact + newPassword, text.createAccount)
                + "<nav>\(link(.login, text.haveAccount))</nav>\n"
        case .forgotten: paragraph(text.forgottenAdvice) + form(.forgotten, email, text.sendMail) + back
        case .mail: paragraph(text.mailAdvice) + form(.mail, email, text.sendMail) + back
        case .sms: paragraph(text.smsAdvice) + form(.sms, phone, text.sendSMS) + back
        case .code: sent
        case .resend: resend
        case .wait: paragraph(text.asking)
        case .factor: factors
        case .newPassword: form(.newPassword, newPassword, text.savePassword) + skip(text.keepPassword)
        case .done: paragraph(text.doneAdvice)
        case .unused: paragraph(text.unusedAdvice) + paragraph(text.doneAdvice)
        case .ended: paragraph(text.endedAdvice)
        case .elsewhere: paragraph(text.elsewhereAdvice)
        }
    }

    // MARK: Screens

    private var login: String {
        var login = ""
        if content.offers.email || content.offers.phone {
            // The browser is to offer no password here: none is kept for this address.
            let password = input("password", "password", text.password, autocomplete: "off")
            login += form(.password, contact + password, text.signIn)
            var links: [String] = []
            if content.offers.email {
                links += [link(.mail, text.byMail), link(.forgotten, text.forgotten)]
            }
            if content.offers.phone { links.append(link(.sms, text.bySMS)) }
            if content.offers.signUp { links.append(link(.signUp, text.signUp)) }
            login += "<nav>\(links.joined(separator: "\n"))</nav>\n"
        }
        for provider in content.providers {
            login +=
                "<a class=\"button\" href=\"\(HTMLPage.escaped(provider.path))\">"
                + "\(text.continueWith) \(HTMLPage.escaped(ScreenText.name(ofProvider: provider.provider)))</a>\n"
        }
        return login.isEmpty ? paragraph(text.nothingOffered) : login
    }

    private var sent: String {
        let advice = content.hasLink ? text.linkSent : text.codeSent
        return "<p>\(advice) <bdi>\(HTMLPage.escaped(content.sentTo))</bdi></p>\n"
            + form(.code, code, text.confirm)
            + "<nav>\(link(.resend, text.sendAgain))\n\(link(.login, text.otherWay))</nav>\n"
    }

    private var resend: String {
        paragraph(resendAdvice(content.secondsLeft))
            + form(.resend, "", text.sendAgain, isDisabled: content.secondsLeft > 0)
            + "<nav>\(link(.code, text.enterCode))\n\(link(.login, text.otherWay))</nav>\n"
    }

    private func resendAdvice(_ seconds: Int) -> String {
        seconds > 0 ? "\(text.resendIn) \(seconds) \(text.seconds)" : text.mayResend
    }

    private var factors: String {
        var factors = ""
        for factor in content.factors {
            let name = factor.name.map { " <bdi>\(HTMLPage.escaped($0))</bdi>" } ?? ""
            let id = "<input type=\"hidden\" name=\"factor\" value=\"\(HTMLPage.escaped(factor.id))\">\n"
            if factor.isPhone, !factor.hasMessage {
                factors += "<p>\(text.phoneFactor)\(name)</p>\n" + form(.challenge, id, text.sendSMS)
            } else {
                let advice = factor.isPhone ? text.phoneFactorSent : text.appFactor
                factors += "<p>\(advice)\(name)</p>\n"
                factors += form(.factor, id + code(of: factor.id), text.confirm)
                if factor.isPhone {
                    factors += paragraph(resendAdvice(factor.secondsLeft))
                    factors += form(.challenge, id, text.sendAgain, isQuiet: true)
                }
            }
        }
        return factors + skip(text.skipFactor)
    }

    // MARK: Parts

    private var contact: String {
        switch (content.offers.email, content.offers.phone) {
        case (false, true): phone
        case (true, true):
            input(
                "text", "email", text.emailOrPhone, autocomplete: "email",
                value: content.email.isEmpty ? content.phone : content.email)
        default: email
        }
    }

    private var email: String {
        input("email", "email", text.email, autocomplete: "email", value: content.email)
    }

    private var phone: String {
        input("tel", "phone", text.phone, autocomplete: "tel", value: content.phone)
    }

    private var newPassword: String {
        input("password", "password", text.newPassword, autocomplete: "new-password")
    }

    private var code: String { code(of: "") }

    /// An id stands on a page once.
    private func code(of factor: String) -> String {
        input("text", "code", text.code, autocomplete: "one-time-code", id: "code\(factor)", isNumber: true)
    }

    private var back: String { "<nav>\(link(.login, text.otherWay))</nav>\n" }

    private func skip(_ label: String) -> String { form(.skip, "", label, isQuiet: true) }

    private func paragraph(_ sentence: String) -> String { "<p>\(sentence)</p>\n" }

    private func link(_ screen: Screen, _ label: String) -> String { "<a href=\"\(screen.rawValue)\">\(label)</a>" }

    private func form(
        _ action: PageForm.Action, _ fields: String, _ button: String, isDisabled: Bool = false, isQuiet: Bool = false
    ) -> String {
        """
        <form method="post" action="\(content.screen.rawValue)">
        <input type="hidden" name="action" value="\(action.rawValue)">
        <input type="hidden" name="token" value="\(HTMLPage.escaped(content.token))">
        \(fields)<button\(isQuiet ? " class=\"quiet\"" : "")\(isDisabled ? " disabled" : "")>\(button)</button>
        </form>

        """
    }

    private func input(
        _ type: String, _ name: String, _ label: String, autocomplete: String, value: String = "", id: String? = nil,
        isNumber: Bool = false
    ) -> String {
        let id = HTMLPage.escaped(id ?? name)
        let complaint = content.complaint.flatMap { $0.field == name ? $0.sentence : nil }
        let wrong = complaint.map { "<p class=\"wrong\" id=\"\(id)-wrong\">\(HTMLPage.escaped($0))</p>\n" } ?? ""
        let state = complaint == nil ? "" : " aria-invalid=\"true\" aria-describedby=\"\(id)-wrong\""
        return """
            <label for="\(id)">\(label)</label>
            <input type="\(type)" id="\(id)" name="\(name)" autocomplete="\(autocomplete)" \
            value="\(HTMLPage.escaped(value))" required\(isNumber ? " inputmode=\"numeric\"" : "")\(state)>
            \(wrong)
            """
    }
}
