// Every sentence of the pages. A sentence has no markup and nothing to escape.

internal import SignInPage

extension PageLanguage {
    /// What a page says.
    struct Sentences: Sendable {
        let heading: String
        /// What has happened.
        let event: String
        /// What the user can do next.
        let advice: String
    }

    /// The names of the facts about a sign-in.
    struct Words: Sendable {
        let account: String
        let provider: String
    }

    var words: Words {
        switch self {
        case .english: Words(account: "Account", provider: "Provider")
        case .russian: Words(account: "Учётная запись", provider: "Провайдер")
        }
    }

    func sentences(of page: Page) -> Sentences {
        switch self {
        case .english: PageLanguage.english(page)
        case .russian: PageLanguage.russian(page)
        }
    }

    private static func english(_ page: Page) -> Sentences {
        let nothing = "Ringback, a program on this computer, has changed nothing."
        let again =
            "You can close this tab. To try again, start the sign-in once more in the program that asked you to sign in."
        return switch page {
        case .done:
            Sentences(
                heading: "Signed in",
                event: "Ringback, a program on this computer, has signed you in.",
                advice: "You can close this tab and go back to the program that asked you to sign in.")
        case .failed:
            Sentences(
                heading: "Sign-in failed", event: nothing,
                advice: "You can close this tab. The program that asked you to sign in says what went wrong. "
                    + "You can try again there.")
        case .denied:
            Sentences(
                heading: "Sign-in declined",
                event: "You declined, or the provider did not allow it. \(nothing)", advice: again)
        case .expired:
            Sentences(
                heading: "The sign-in took too long",
                event: "It was not finished in time. \(nothing)", advice: again)
        case .refused, .wrongIssuer:
            Sentences(
                heading: page == .wrongIssuer ? "Issuer not confirmed" : "Response refused",
                event: (page == .wrongIssuer
                    ? "The provider's response does not name the issuer that this sign-in was begun at (iss). "
                    : "The response came, but not in the form that this sign-in waits for. ") + nothing,
                advice: "The program that asked you to sign in says what is wrong. It still waits. "
                    + "You can close this tab.")
        case .noted:
            Sentences(
                heading: "Confirmed", event: "One of the two addresses is confirmed.",
                advice: "Open the link in the mail to the other address too. You can close this tab.")
        case .outdated:
            Sentences(
                heading: "Link of an older message", event: "This link does not work any more.",
                advice: "Open the link in the newest message. You can close this tab.")
        case .used:
            Sentences(
                heading: "This address works once",
                event: "It was opened before, its time is over, or many newer addresses have replaced it.",
                advice: "If the page that it led to is not open in another tab, go back to the program that opened it. "
                    + "It shows the page's address, or you can start again there.")
        case .notFound:
            Sentences(
                heading: "No sign-in here", event: "This page belongs to no sign-in that is in progress.",
                advice: "If you were signing in, go back to the program that asked you to sign in. It says what "
                    + "happened. You can close this tab.")
        }
    }

    private static func russian(_ page: Page) -> Sentences {
        let nothing = "Ringback, программа на этом компьютере, ничего не изменила."
        let close = "Эту вкладку можно закрыть."
        let again =
            "\(close) Чтобы попробовать снова, начните вход ещё раз в программе, которая предложила вам войти."
        return switch page {
        case .done:
            Sentences(
                heading: "Вход выполнен", event: "Ringback, программа на этом компьютере, выполнила вход.",
                advice: "\(close) Вернитесь в программу, которая предложила вам войти.")
        case .failed:
            Sentences(
                heading: "Не удалось войти", event: nothing,
                advice: "\(close) Программа, которая предложила вам войти, сообщает, что произошло. "
                    + "В ней можно попробовать снова.")
        case .denied:
            Sentences(
                heading: "Вход отклонён", event: "Вы отказались, или провайдер не разрешил вход. \(nothing)",
                advice: again)
        case .expired:
            Sentences(
                heading: "Время для входа истекло", event: "Вход не был завершён вовремя. \(nothing)", advice: again)
        case .refused, .wrongIssuer:
            Sentences(
                heading: page == .wrongIssuer ? "Издатель не подтверждён" : "Ответ отклонён",
                event: (page == .wrongIssuer
                    ? "В ответе провайдера не указан издатель, у которого начат этот вход (iss). "
                    : "Ответ пришёл, но не в том виде, в котором его ждёт этот вход. ") + nothing,
                advice: "Программа, которая предложила вам войти, сообщает, что не так. Она ещё ждёт. \(close)")
        case .noted:
            Sentences(
                heading: "Подтверждено", event: "Один из двух адресов подтверждён.",
                advice: "Откройте также ссылку в письме на другой адрес. \(close)")
        case .outdated:
            Sentences(
                heading: "Ссылка из старого сообщения", event: "Эта ссылка больше не действует.",
                advice: "Откройте ссылку из самого нового сообщения. \(close)")
        case .used:
            Sentences(
                heading: "Этот адрес работает один раз",
                event: "Его уже открывали, его время истекло или его заменили более новые адреса.",
                advice: "Если страница, на которую он вёл, не открыта в другой вкладке, вернитесь в программу, которая "
                    + "его открыла. Она показывает адрес страницы, или в ней можно начать заново.")
        case .notFound:
            Sentences(
                heading: "Здесь нет входа", event: "Эта страница не относится ни к одному начатому входу.",
                advice: "Если вы входили, вернитесь в программу, которая предложила вам войти. Она сообщает, что "
                    + "произошло. \(close)")
        }
    }
}
