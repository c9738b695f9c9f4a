public import BrokerCore
internal import Desktop
internal import Glibc
public import RingbackBase
internal import Terminal

public enum NoticeSubject: Sendable, Equatable {
    /// A program waits for the account, which needs a sign-in; what the program calls itself, which is not checked.
    case signInWanted(by: String?)
    /// The session ends at this time. Only a new sign-in prevents it.
    case sessionEnding(at: WallInstant)
    /// The provider ended the session.
    case sessionEnded
    /// A sign-in was completed; the user's address or name.
    case signedIn(as: String?)
    /// A sign-in in a browser or by a link has failed; a message for the user, if there is one.
    case signInFailed(message: String?)
    /// A change of the user's own data was confirmed by a link; a message for the user, if there is one.
    case changeConfirmed(message: String?)
    /// A page of our own is opened, on which the same two words stand.
    case ownPage(words: String)
    /// The sign-in page could not be opened.
    case pageNotOpened
    /// A link that belongs to no pending sign-in.
    case linkUnusable
    /// A server refused two of the account's tokens in a row; the server's host.
    case tokensRefused(by: String)
    /// A program has used the account for the first time.
    case accountUsed(by: ProgramIdentity)
    /// A program waits for the user's consent.
    case consentWanted(ConsentUse, scope: String?, by: ProgramIdentity)
    /// Programs have asked for consent too often, this one last.
    case consentsFlooded(by: ProgramIdentity)

    /// True if it asks for a sign-in. Such a notification stays until the user reacts.
    var isPrompt: Bool {
        switch self {
        case .signInWanted, .sessionEnding, .sessionEnded: true
        case .signedIn, .signInFailed, .changeConfirmed, .ownPage, .pageNotOpened, .linkUnusable, .tokensRefused,
            .accountUsed, .consentWanted, .consentsFlooded:
            false
        }
    }
}

/// The texts of notifications. They contain only names and times: no URL, no token, nothing that must not be visible on
/// a locked screen.
public struct NoticeSentences: Sendable {
    /// The keys of the action "Sign in", and of a click on the notification itself.
    static let signIn = "sign_in"
    static let click = "default"
    /// The keys of the answers to a question of consent. A click on the notification itself is no answer.
    static let allowOnce = "allow_once"
    static let allowSession = "allow_session"
    static let deny = "deny"
    /// The maximum length of a name. A longer one would hide the rest of the text.
    private static let maxName = 80

    let language: Language
    let now: @Sendable () -> WallInstant

    public init(language: Language, now: @escaping @Sendable () -> WallInstant) {
        self.language = language
        self.now = now
    }

    /// The notification about a subject.
    ///
    /// - Parameters:
    ///   - account: nil for a link that belongs to no account.
    ///   - label: what the account is called; nil for its name.
    func notice(_ subject: NoticeSubject, _ account: String?, label: String? = nil) -> Notice {
        let (summary, body) = sentences(subject, label ?? account ?? "", account ?? "")
        if case .consentWanted = subject { return question(summary, body) }
        guard subject.isPrompt else {
            let urgency: Notice.Urgency = if case .signedIn = subject { .low } else { .normal }
            return Notice(summary: summary, body: body, urgency: urgency)
        }
        let label = either("Sign in", "Войти")
        return Notice(
            summary: summary, body: body,
            bodyWithoutActions: "\(body) \(run(ShownCommand("ringback login \(account ?? "")")))",
            actions: [
                .init(key: NoticeSentences.click, label: label), .init(key: NoticeSentences.signIn, label: label),
            ],
            staysUntilAnswered: true)
    }

    private func question(_ summary: String, _ body: String) -> Notice {
        Notice(
            summary: summary, body: body, bodyWithoutActions: "\(body) \(run("ringback consent"))",
            actions: [
                .init(key: NoticeSentences.allowOnce, label: either("Allow once", "Разрешить один раз")),
                .init(key: NoticeSentences.allowSession, label: either("Allow for this session", "Разрешить на сеанс")),
                .init(key: NoticeSentences.deny, label: either("Deny", "Запретить")),
            ], staysUntilAnswered: true)
    }

    private func either(_ english: String, _ russian: String) -> String { language == .russian ? russian : english }
    private func run(_ command: ShownCommand) -> String { "\(either("Run", "Команда")): \(shown: command)" }

    private func sentences(
        _ subject: NoticeSubject, _ name: String, _ account: String
    ) -> (summary: String, body: String) {
        switch subject {
        case .signInWanted(let program):
            let program = NoticeSentences.name(ofProgram: program)
            return (
                either("Sign in to \(name)", "Войдите в \(name)"),
                either(
                    "\(program ?? "A program") is waiting for this account.",
                    "Этой учётной записи ждёт \(program ?? "программа").")
            )
        case .sessionEnding(let end):
            let time = time(end)
            return (
                either("The session of \(name) is ending", "Сеанс \(name) заканчивается"),
                either(
                    "It ends at \(time). Sign in to continue.", "Он закончится в \(time). Войдите, чтобы продолжить.")
            )
        case .sessionEnded:
            return (
                either("The session of \(name) has ended", "Сеанс \(name) закончился"),
                either("Sign in again to continue.", "Войдите снова, чтобы продолжить.")
            )
        case .signedIn(let user):
            let user = user.map(NoticeSentences.plain)
            return (
                either("Signed in to \(name)", "Выполнен вход в \(name)"),
                user.map { either("As \($0).", "Пользователь: \($0).") } ?? ""
            )
        case .signInFailed(let message):
            return (
                either("Not signed in to \(name)", "Вход в \(name) не выполнен"),
                message.map(NoticeSentences.plain) ?? either("The sign-in was not finished.", "Вход не был завершён.")
            )
        case .changeConfirmed(let message):
            return (
                either("Confirmed for \(name)", "Подтверждено для \(name)"), message.map(NoticeSentences.plain) ?? ""
            )
        case .ownPage(let words):
            return (
                either(
                    "The sign-in page of \(name) shows: \(words)",
                    "На странице входа в \(name) стоят слова: \(words)"),
                either(
                    "Enter nothing on a page that shows other words.",
                    "Ничего не вводите на странице с другими словами.")
            )
        case .pageNotOpened:
            return (
                either(
                    "The sign-in page of \(name) could not be opened", "Не удалось открыть страницу входа в \(name)"),
                run(ShownCommand("ringback login \(account)"))
            )
        case .linkUnusable:
            return (
                either("This link belongs to no sign-in", "Эта ссылка не завершает вход"),
                either(
                    "It may have been used already, or the sign-in was cancelled. Please sign in again.",
                    "Она уже использована, или вход отменён. Войдите ещё раз.")
            )
        case .tokensRefused(let server):
            let server = NoticeSentences.plain(server)
            return (
                either("A server refuses the tokens of \(name)", "Сервер не принимает токены \(name)"),
                either(
                    "\(server) has refused two in a row. A scope is probably missing.",
                    "\(server) отклонил два токена подряд. Вероятно, не хватает области доступа (scope).")
            )
        case .accountUsed(let program):
            return (
                either("A program has used \(name)", "Программа воспользовалась \(name)"), "\(text(of: program))."
            )
        case .consentWanted(let use, let scope, let program):
            let summary =
                use.exposesAccount
                ? either("May a program show \(name) to other programs?", "Открыть \(name) другим программам?")
                : either("May a program use \(name)?", "Разрешить программе доступ к \(name)?")
            let asked = scope.map { ". \(either("Scope", "Область")): \(NoticeSentences.plain($0))" } ?? ""
            return (summary, "\(text(of: program))\(asked).")
        case .consentsFlooded(let program):
            let program = text(of: program)
            return (
                either("Too many questions about accounts", "Слишком много вопросов об учётных записях"),
                either(
                    "Programs are refused for a while, the last one is \(program).",
                    "Программам временно отказано, последней: \(program).")
            )
        }
    }

    private func text(of program: ProgramIdentity) -> String {
        guard language == .russian else { return program.text }
        guard let path = program.quotedPath else { return "Завершившаяся программа" }
        return program.isRootOwned ? path : "\(path) (вы можете изменить этот файл)"
    }

    /// What a program calls itself, if that is a plain name: it may call itself anything, such as a sentence.
    static func name(ofProgram text: String?) -> String? {
        guard let text, (1...32).contains(text.utf8.count),
            text.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || "._-".contains($0)) })
        else { return nil }
        return text
    }

    /// Text from a provider, as one line. Control characters and those that change the direction of text are removed.
    static func plain(_ text: String) -> String {
        let kept = text.unicodeScalars.filter { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: false
            default: true
            }
        }
        guard kept.count > maxName else { return String(String.UnicodeScalarView(kept)) }
        return String(String.UnicodeScalarView(kept.prefix(maxName))) + "…"
    }

    /// The local time of day, with the date unless it is today.
    private func time(_ instant: WallInstant) -> String {
        let (then, today) = (NoticeSentences.local(instant), NoticeSentences.local(now()))
        return then.date == today.date ? then.time : "\(then.time), \(then.date)"
    }

    private static func local(_ instant: WallInstant) -> (date: String, time: String) {
        var seconds = time_t(instant.seconds)
        var parts = unsafe tm()
        _ = unsafe localtime_r(&seconds, &parts)
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let date = unsafe "\(parts.tm_year + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
        return (date, unsafe "\(two(parts.tm_hour)):\(two(parts.tm_min))")
    }
}
