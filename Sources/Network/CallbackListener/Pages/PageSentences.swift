// A sentence has no markup and nothing to escape.
internal import RingbackBase
internal import SignInPage

extension PageLanguage {
    /// What has happened, and what the user can do next.
    typealias Sentences = (heading: String, event: String, advice: String)

    /// `seconds`: the time that the sign-in had, if it is known.
    func sentences(of page: Page, within seconds: Int? = nil) -> Sentences {
        let time = seconds.map(span)
        return switch self {
        case .english: PageLanguage.english(page, time)
        case .russian: PageLanguage.russian(page, time)
        }
    }

    private static func english(_ page: Page, _ time: String?) -> Sentences {
        let nothing = "Ringback, a program on this computer, has changed nothing."
        let again =
            "You can close this tab. To try again, start the sign-in once more in the program that asked you to sign in."
        return switch page {
        case .done:
            (
                "Signed in",
                "Ringback, a program on this computer, has signed you in.",
                "You can close this tab and go back to the program that asked you to sign in."
            )
        case .failed:
            (
                "Sign-in failed", nothing,
                "You can close this tab. The program that asked you to sign in says what went wrong. "
                    + "You can try again there."
            )
        case .denied:
            ("Sign-in declined", "You declined, or the provider did not allow it. \(nothing)", again)
        case .expired:
            (
                "The sign-in took too long",
                "It was not finished \(time.map { "within \($0)" } ?? "in time"). \(nothing)", again
            )
        case .refused, .wrongIssuer:
            (
                page == .wrongIssuer ? "Issuer not confirmed" : "Response refused",
                (page == .wrongIssuer
                    ? "The provider's response does not name the issuer that this sign-in was begun at (iss). "
                    : "The response came, but not in the form that this sign-in waits for. ") + nothing,
                "The program that asked you to sign in says what is wrong. It still waits. "
                    + "You can close this tab."
            )
        case .noted:
            (
                "Confirmed", "One of the two addresses is confirmed.",
                "Open the link in the email to the other address too. You can close this tab."
            )
        case .outdated:
            (
                "Link of an older message", "This link does not work any more.",
                "Open the link in the newest message. You can close this tab."
            )
        case .used:
            (
                "This address works once",
                "It was opened before, its time is over, or many newer addresses have replaced it.",
                "If the page that it led to is not open in another tab, go back to the program that opened it. "
                    + "It shows the page's address, or you can start again there."
            )
        case .notFound:
            (
                "No sign-in here", "This page belongs to no sign-in that is in progress.",
                "If you were signing in, go back to the program that asked you to sign in. It says what "
                    + "happened. You can close this tab."
            )
        }
    }

    private static func russian(_ page: Page, _ time: String?) -> Sentences {
        let nothing = "Ringback, программа на этом компьютере, ничего не изменила."
        let close = "Эту вкладку можно закрыть."
        let again =
            "\(close) Чтобы попробовать снова, начните вход ещё раз в программе, которая предложила вам войти."
        return switch page {
        case .done:
            (
                "Вход выполнен", "Ringback, программа на этом компьютере, выполнила вход.",
                "\(close) Вернитесь в программу, которая предложила вам войти."
            )
        case .failed:
            (
                "Не удалось войти", nothing,
                "\(close) Программа, которая предложила вам войти, сообщает, что произошло. "
                    + "В ней можно попробовать снова."
            )
        case .denied:
            ("Вход отклонён", "Вы отказались, или провайдер не разрешил вход. \(nothing)", again)
        case .expired:
            (
                "Время для входа истекло",
                "Вход не был завершён \(time.map { "за \($0)" } ?? "вовремя"). \(nothing)", again
            )
        case .refused, .wrongIssuer:
            (
                page == .wrongIssuer ? "Издатель не подтверждён" : "Ответ отклонён",
                (page == .wrongIssuer
                    ? "В ответе провайдера не указан издатель, у которого начат этот вход (iss). "
                    : "Ответ пришёл, но не в том виде, в котором его ждёт этот вход. ") + nothing,
                "Программа, которая предложила вам войти, сообщает, что не так. Она ещё ждёт. \(close)"
            )
        case .noted:
            (
                "Подтверждено", "Один из двух адресов подтверждён.",
                "Откройте также ссылку в письме на другой адрес. \(close)"
            )
        case .outdated:
            (
                "Ссылка из старого сообщения", "Эта ссылка больше не действует.",
                "Откройте ссылку из самого нового сообщения. \(close)"
            )
        case .used:
            (
                "Этот адрес работает один раз",
                "Его уже открывали, его время истекло или его заменили более новые адреса.",
                "Если страница, на которую он вёл, не открыта в другой вкладке, вернитесь в программу, которая "
                    + "его открыла. Она показывает адрес страницы, или в ней можно начать заново."
            )
        case .notFound:
            (
                "Здесь нет входа", "Эта страница не относится ни к одному начатому входу.",
                "Если вы входили, вернитесь в программу, которая предложила вам войти. Она сообщает, что "
                    + "произошло. \(close)"
            )
        }
    }
}
