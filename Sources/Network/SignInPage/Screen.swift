public import RingbackBase

/// Of the sign-in page. The raw value is its path.
public enum Screen: String, Sendable, CaseIterable {
    case login = "/"
    case signUp = "/sign-up"
    case forgotten = "/forgotten"
    /// For an address, to send a code and a link to it.
    case mail = "/mail"
    /// For a phone.
    case sms = "/sms"
    /// For the code of a message that was sent.
    case code = "/code"
    case resend = "/resend"
    /// The project is being asked.
    case wait = "/wait"
    case factor = "/factor"
    case newPassword = "/new-password"
    case done = "/done"
    /// Nothing is left to do, but what was typed last was not used.
    case unused = "/unused"
    /// The sign-in has ended without a session.
    case ended = "/ended"
    /// For a browser that did not come by the start address.
    case elsewhere = "/elsewhere"

    /// A user may go to it while the sign-in is pending.
    public var isFree: Bool {
        switch self {
        case .login, .signUp, .forgotten, .mail, .sms: true
        case .code, .resend, .wait, .factor, .newPassword, .done, .unused, .ended, .elsewhere: false
        }
    }
}

/// What a screen shows. Nothing of it is HTML.
public struct ScreenContent: Sendable {
    /// What a project offers.
    public struct Offers: Sendable {
        public var email = false
        public var phone = false
        public var signUp = false

        public init() {}
    }

    public struct ProviderLink: Sendable {
        /// As the project calls it, such as `google`.
        public let provider: String
        /// A path of the page that works once.
        public let path: String
        /// As people write the provider's name.
        public var title: String { ScreenText.name(ofProvider: provider) }

        public init(provider: String, path: String) {
            self.provider = provider
            self.path = path
        }
    }

    public struct Factor: Sendable {
        public let id: String
        public let name: String?
        /// Codes are sent to it; otherwise an authenticator app shows them.
        public let isPhone: Bool
        public let hasMessage: Bool
        /// Seconds until another code may be sent.
        public let secondsLeft: Int

        public init(id: String, name: String?, isPhone: Bool, hasMessage: Bool, secondsLeft: Int = 0) {
            self.id = id
            self.name = name
            self.isPhone = isPhone
            self.hasMessage = hasMessage
            self.secondsLeft = secondsLeft
        }
    }

    public let screen: Screen
    /// Its display name or name. The host stands beside it.
    public let account: String
    public let host: String
    /// Two words, which the program that began the sign-in shows too.
    public let words: String
    /// Of every form.
    public let token: String
    public var offers = Offers()
    public var providers: [ProviderLink] = []
    /// What was wrong with the form that was sent last, and with which field of it, by its name in the form; nil if it is
    /// about the whole form.
    public var complaint: (field: String?, sentence: String)?
    /// Of the user who has signed in: an address, a number or a name. Empty if it is not known.
    public var user = ""
    /// Why the sign-in has ended, in a sentence; empty if it is not known.
    public var ending = ""
    /// Another user than the account's may take the account over.
    public var offersSwitch = false
    /// What was typed before.
    public var email = ""
    public var phone = ""
    /// Where the message went.
    public var sentTo = ""
    /// The message has a link as well as a code.
    public var hasLink = false
    /// Seconds until another message may be sent.
    public var secondsLeft = 0
    /// Seconds until the page's time is over.
    public var lifetime = 0
    public var factors: [Factor] = []

    public init(_ screen: Screen, account: String, host: String, words: String, token: String) {
        self.screen = screen
        self.account = account
        self.host = host
        self.words = words
        self.token = token
    }
}

/// Every form of the sign-in page is written here.
public struct ScreenDocument: Sendable {
    private let content: ScreenContent
    private let text: ScreenText
    private let language: PageLanguage

    public init(_ content: ScreenContent, in language: PageLanguage) {
        self.content = content
        self.language = language
        text = ScreenText.of(language)
    }

    public var html: String { HTMLPage(heading, in: language, tone: tone, content: head + body).html }

    /// In seconds; nil if the browser need not load the screen again. A form is left when the page's time is over:
    /// later, another program may have the port, and would get what is typed.
    public var refresh: Int? {
        switch content.screen {
        case .wait: 1
        // What is typed would be lost, so only a screen without a field counts down.
        case .resend where content.secondsLeft > 0: min(content.secondsLeft, 5)
        case .done, .unused, .ended, .elsewhere: nil
        default: max(0, content.lifetime) + 1
        }
    }

    /// Somebody else signed in than the account's user.
    public static func otherUser(in language: PageLanguage) -> String { ScreenText.of(language).otherUser }
    /// After a code of a message that has a link as well.
    public static func usedCode(in language: PageLanguage) -> String { ScreenText.of(language).usedCode }
    /// The sign-in had this number of seconds.
    public static func expired(_ seconds: Int, in language: PageLanguage) -> String {
        "\(ScreenText.of(language).notFinished) \(language.span(seconds))."
    }

    public static func cancelled(in language: PageLanguage) -> String { ScreenText.of(language).cancelled }
    /// The form before belonged to no step.
    public static func unused(in language: PageLanguage) -> String { ScreenText.of(language).unusedAdvice }

    /// The project requires a pause of some seconds.
    public static func wait(_ seconds: Int, in language: PageLanguage) -> String {
        let text = ScreenText.of(language)
        return "\(text.waitAtLeast) \(seconds) \(text.seconds)"
    }

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

    /// Account, project, the two words, and what was wrong with the whole form.
    private var head: String {
        guard content.screen != .elsewhere else { return "" }
        var head = HTMLPage.place(content.account, at: content.host, in: language)
        let words = "<b>\(HTMLPage.escaped(content.words))</b></p>\n"
        switch content.screen {
        case .login: head += "<p class=\"words\">\(text.words) \(words)"
        case .done, .unused, .ended: break
        default: head += "<p class=\"words known\">\(text.sameWords) \(words)"
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
            form(.signUp, contact + newPassword, text.createAccount) + ways([(.login, text.haveAccount)])
        case .forgotten: paragraph(text.forgottenAdvice) + form(.forgotten, email, text.sendMail) + back
        case .mail: paragraph(text.mailAdvice) + form(.mail, email, text.sendMail) + back
        case .sms: paragraph(text.smsAdvice) + form(.sms, phone, text.sendSMS) + back
        case .code: sent
        case .resend: resend
        case .wait: paragraph(text.asking)
        case .factor: factors
        case .newPassword: form(.newPassword, newPassword, text.savePassword) + skip(text.keepPassword)
        case .done: user + paragraph(text.doneAdvice)
        case .unused: user + paragraph(text.unusedAdvice) + paragraph(text.doneAdvice)
        case .ended: paragraph(HTMLPage.escaped(content.ending)) + paragraph(text.endedAdvice)
        case .elsewhere: paragraph(text.elsewhereAdvice)
        }
    }

    private var login: String {
        let links = content.providers.map { provider in
            "<a class=\"button\" href=\"\(HTMLPage.escaped(provider.path))\">"
                + "\(text.continueWith) \(HTMLPage.escaped(provider.title))</a>\n"
        }
        var login = links.isEmpty ? "" : "<div class=\"providers\">\n\(links.joined())</div>\n"
        guard content.offers.email || content.offers.phone else {
            return login.isEmpty ? paragraph(text.nothingOffered) : login
        }
        if !login.isEmpty { login += "<p class=\"or\">\(text.or)</p>\n" }
        // The browser is to offer no password here: none is kept for this address.
        var fields = contact + input("password", "password", text.password, autocomplete: "off")
        var others: [(Screen, String)] = []
        if content.offers.email {
            fields += "<p class=\"hint\">\(link(.forgotten, text.forgotten))</p>\n"
            others.append((.mail, text.byMail))
        }
        if content.offers.phone { others.append((.sms, text.bySMS)) }
        if content.offers.signUp { others.append((.signUp, text.signUp)) }
        return login + form(.password, fields, text.signIn) + ways(others, "<h2>\(text.otherWays)</h2>\n")
    }

    private var user: String {
        content.user.isEmpty ? "" : "<p>\(language.signedInAs) \(HTMLPage.strong(content.user))</p>\n"
    }

    private var sent: String {
        let advice = content.hasLink ? text.linkSent : text.codeSent
        return "<p>\(advice) \(HTMLPage.strong(content.sentTo))</p>\n" + form(.code, code, text.confirm)
            + ways([(.resend, text.sendAgain), (.login, text.otherWay)])
    }

    private var resend: String {
        paragraph(resendAdvice(content.secondsLeft))
            + form(.resend, "", text.sendAgain, isDisabled: content.secondsLeft > 0)
            + ways([(.code, text.enterCode), (.login, text.otherWay)])
    }

    private func resendAdvice(_ seconds: Int) -> String {
        seconds > 0 ? "\(text.resendIn) \(seconds) \(text.seconds)" : text.mayResend
    }

    private var factors: String {
        var factors = ""
        for factor in content.factors {
            let name = factor.name.map { "\(HTMLPage.strong($0)): " } ?? ""
            let id = "<input type=\"hidden\" name=\"factor\" value=\"\(HTMLPage.escaped(factor.id))\">\n"
            factors += "<section>\n<p>\(name)"
            if factor.isPhone, !factor.hasMessage {
                factors += "\(text.phoneFactor)</p>\n" + form(.challenge, id, text.sendSMS)
            } else {
                factors += "\(factor.isPhone ? text.phoneFactorSent : text.appFactor)</p>\n"
                factors += form(.factor, id + code(of: factor.id), text.confirm)
                if factor.isPhone {
                    factors += paragraph(resendAdvice(factor.secondsLeft))
                    factors += form(.challenge, id, text.sendAgain, isQuiet: true)
                }
            }
            factors += "</section>\n"
        }
        return factors + skip(text.skipFactor)
    }

    private var contact: String {
        switch (content.offers.email, content.offers.phone) {
        case (false, true): return phone
        case (true, true):
            let typed = content.email.isEmpty ? content.phone : content.email
            return input("text", "email", text.emailOrPhone, autocomplete: "email", value: typed)
        default: return email
        }
    }

    private var email: String { input("email", "email", text.email, autocomplete: "email", value: content.email) }
    private var phone: String { input("tel", "phone", text.phone, autocomplete: "tel", value: content.phone) }
    private var newPassword: String {
        input("password", "password", text.newPassword, autocomplete: "new-password", hint: text.passwordRule)
    }
    private var code: String { code(of: "") }

    /// An id stands on a page once.
    private func code(of factor: String) -> String {
        input("text", "code", text.code, autocomplete: "one-time-code", id: "code\(factor)")
    }

    private var back: String { ways([(.login, text.otherWay)]) }
    private func skip(_ label: String) -> String { form(.skip, "", label, isQuiet: true) }
    private func paragraph(_ sentence: String) -> String { "<p>\(sentence)</p>\n" }
    private func ways(_ links: [(Screen, String)], _ heading: String = "") -> String {
        guard !links.isEmpty else { return "" }
        return "<nav>\n\(heading)<ul>\n\(links.map { "<li>\(link($0, $1))</li>\n" }.joined())</ul>\n</nav>\n"
    }

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
        hint: String? = nil
    ) -> String {
        let id = HTMLPage.escaped(id ?? name)
        let complaint = content.complaint.flatMap { $0.field == name ? $0.sentence : nil }
        let rule = hint.map { "<p class=\"hint\" id=\"\(id)-rule\">\($0)</p>\n" } ?? ""
        let wrong = complaint.map { "<p class=\"wrong\" id=\"\(id)-wrong\">\(HTMLPage.escaped($0))</p>\n" } ?? ""
        let texts = [hint.map { _ in "\(id)-rule" }, complaint.map { _ in "\(id)-wrong" }].compactMap(\.self)
        var state = name == "code" ? " inputmode=\"numeric\"" : ""
        if focus == name { state += " autofocus" }
        if complaint != nil { state += " aria-invalid=\"true\"" }
        if !texts.isEmpty { state += " aria-describedby=\"\(texts.joined(separator: " "))\"" }
        return """
            <label for="\(id)">\(label)</label>
            \(rule)<input type="\(type)" id="\(id)" name="\(name)" autocomplete="\(autocomplete)" \
            value="\(HTMLPage.escaped(value))" required\(state)>
            \(wrong)
            """
    }

    /// The name of the field that has the focus: the only one that is left to fill. Elsewhere a screen reader would
    /// begin behind what has to be read first.
    private var focus: String? {
        switch content.screen {
        case .forgotten, .mail: "email"
        case .sms: "phone"
        case .code: "code"
        case .newPassword: "password"
        case .factor: content.factors.count { !$0.isPhone || $0.hasMessage } == 1 ? "code" : nil
        case .login where content.offersSwitch: nil
        case .login, .signUp: content.email.isEmpty && content.phone.isEmpty ? nil : "password"
        case .resend, .wait, .done, .unused, .ended, .elsewhere: nil
        }
    }
}

/// The sentences of the sign-in page in one language. None has markup or anything to escape.
struct ScreenText: Sendable {
    let words, sameWords: String
    let signIn, signUp, forgotten, byMail, bySMS, enterCode, sendAgain, oneMoment, secondFactor, newPassword: String
    let signedIn, unused, ended, elsewhere: String
    let email, phone, emailOrPhone, password, code: String
    let createAccount, haveAccount, sendMail, sendSMS, confirm, savePassword, keepPassword, skipFactor: String
    let otherWay, otherWays, or, continueWith: String
    let forgottenAdvice, mailAdvice, smsAdvice, linkSent, codeSent, mayResend, resendIn, seconds, asking: String
    let waitAtLeast, usedCode, passwordRule, notFinished, cancelled: String
    let phoneFactor, phoneFactorSent, appFactor: String
    let doneAdvice, unusedAdvice, endedAdvice, elsewhereAdvice, nothingOffered, otherUser, switchUser: String

    static func of(_ language: PageLanguage) -> ScreenText {
        switch language {
        case .english: english
        case .russian: russian
        }
    }

    static let english = ScreenText(
        words: "Enter nothing unless the program that asked you to sign in shows the same two words:",
        sameWords: "The two words:",
        signIn: "Sign in", signUp: "Create an account", forgotten: "Forgotten password",
        byMail: "Sign in by email", bySMS: "Sign in by SMS", enterCode: "Enter the code",
        sendAgain: "Send the message again", oneMoment: "One moment", secondFactor: "Second factor",
        newPassword: "New password", signedIn: "Signed in", unused: "Your last entry was not used",
        ended: "The sign-in has ended", elsewhere: "Not this browser",
        email: "Email address", phone: "Phone number with country code",
        emailOrPhone: "Email address, or phone number with country code", password: "Password", code: "Code",
        createAccount: "Create the account", haveAccount: "I have an account", sendMail: "Send the email",
        sendSMS: "Send the SMS", confirm: "Confirm", savePassword: "Save the new password",
        keepPassword: "Keep the old password", skipFactor: "Go on without it",
        otherWay: "Sign in another way", otherWays: "Other ways", or: "or", continueWith: "Continue with",
        forgottenAdvice: "You get an email with a link and a code. Then you can choose a new password.",
        mailAdvice: "You get an email with a link or a code.", smsAdvice: "You get an SMS with a code.",
        linkSent: "Open the link in the email on this computer, or enter the code. The email went to",
        codeSent: "Enter the code of the message that went to", mayResend: "You can ask for another message now.",
        resendIn: "You can ask for another message in", seconds: "seconds.",
        asking: "The project is being asked. This page goes on by itself.",
        waitAtLeast: "Too many attempts. Please wait",
        usedCode: "The code is wrong, or used up because the link in the email was opened. Please try again.",
        passwordRule: "At least 6 characters. The project may ask for more.",
        notFinished: "It was not finished within", cancelled: "It was cancelled.",
        phoneFactor: "A code can be sent to your phone.",
        phoneFactorSent: "Enter the code that was sent to your phone.",
        appFactor: "Enter the code that your authenticator app shows.",
        doneAdvice: "You can close this tab and go back to the program that asked you to sign in.",
        unusedAdvice:
            "What you entered last was not used: its step was done already, or its sign-in has ended. A password that "
            + "you entered there was not saved.",
        endedAdvice:
            "Nothing was changed. The program that asked you to sign in says what happened. You can start again there.",
        elsewhereAdvice: "This sign-in was opened in another browser, or its address was used before. Go back to the "
            + "program that asked you to sign in, and open the page from there.",
        nothingOffered: "The project offers no way to sign in here.",
        otherUser:
            "The account is signed in as another user. Nothing was changed. Sign in as that user, or replace that "
            + "user.",
        switchUser: "Replace the other user")

    static let russian = ScreenText(
        words: "Ничего не вводите, если программа, которая предложила вам войти, не показывает те же два слова:",
        sameWords: "Два слова:",
        signIn: "Войти", signUp: "Создать аккаунт", forgotten: "Забыли пароль?",
        byMail: "Войти по почте", bySMS: "Войти по SMS", enterCode: "Введите код",
        sendAgain: "Отправить ещё раз", oneMoment: "Один момент", secondFactor: "Второй фактор",
        newPassword: "Новый пароль", signedIn: "Вход выполнен", unused: "Введённое не использовано",
        ended: "Вход завершён без результата", elsewhere: "Не этот браузер",
        email: "Адрес почты", phone: "Номер телефона с кодом страны",
        emailOrPhone: "Адрес почты или номер телефона с кодом страны", password: "Пароль", code: "Код",
        createAccount: "Создать аккаунт", haveAccount: "У меня есть аккаунт", sendMail: "Отправить письмо",
        sendSMS: "Отправить SMS", confirm: "Подтвердить", savePassword: "Сохранить новый пароль",
        keepPassword: "Оставить старый пароль", skipFactor: "Продолжить без него",
        otherWay: "Войти другим способом", otherWays: "Другие способы", or: "или", continueWith: "Войти через",
        forgottenAdvice: "Вы получите письмо со ссылкой и кодом. Затем можно выбрать новый пароль.",
        mailAdvice: "Вы получите письмо со ссылкой или кодом.", smsAdvice: "Вы получите SMS с кодом.",
        linkSent: "Откройте ссылку из письма на этом компьютере или введите код. Письмо отправлено на",
        codeSent: "Введите код из сообщения, отправленного на", mayResend: "Можно запросить ещё одно сообщение.",
        resendIn: "Новое сообщение можно запросить через", seconds: "с.",
        asking: "Ожидаем ответа проекта. Страница продолжит сама.",
        waitAtLeast: "Слишком много попыток. Подождите",
        usedCode: "Код неверный или уже использован, потому что ссылку из письма открывали. Попробуйте ещё раз.",
        passwordRule: "Не меньше 6 знаков. Проект может требовать большего.",
        notFinished: "Он не был завершён за", cancelled: "Он отменён.",
        phoneFactor: "Код можно отправить на ваш телефон.", phoneFactorSent: "Введите код, отправленный на телефон.",
        appFactor: "Введите код из приложения для подтверждения входа.",
        doneAdvice: "Эту вкладку можно закрыть. Вернитесь в программу, которая предложила вам войти.",
        unusedAdvice:
            "Введённое последним не использовано: этот шаг уже выполнен, или вход завершён. Введённый там пароль не "
            + "сохранён.",
        endedAdvice:
            "Ничего не изменено. Программа, которая предложила вам войти, сообщает, что произошло. В ней можно "
            + "начать снова.",
        elsewhereAdvice: "Этот вход открыт в другом браузере, или его адрес уже использован. Вернитесь в программу, "
            + "которая предложила вам войти, и откройте страницу из неё.",
        nothingOffered: "Проект не предлагает здесь способов входа.",
        otherUser: "В учётной записи уже выполнен вход другого пользователя. Ничего не изменено. Войдите как он или "
            + "замените его.",
        switchUser: "Заменить другого пользователя")

    /// As people write it.
    static func name(ofProvider provider: String) -> String {
        switch provider {
        case "azure": "Microsoft"
        case "github": "GitHub"
        case "gitlab": "GitLab"
        case "linkedin", "linkedin_oidc": "LinkedIn"
        case "slack_oidc": "Slack"
        case "workos": "WorkOS"
        default: provider.prefix(1).uppercased() + provider.dropFirst()
        }
    }
}
