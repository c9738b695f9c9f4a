// Every sentence of the screens. None has markup or anything to escape.

/// The sentences of the sign-in page in one language.
struct ScreenText: Sendable {
    let account, project, words: String
    let signIn, signUp, forgotten, byMail, bySMS, enterCode, sendAgain, oneMoment, secondFactor, newPassword: String
    let signedIn, unused, ended, elsewhere: String
    let email, phone, emailOrPhone, password, code: String
    let createAccount, haveAccount, sendMail, sendSMS, confirm, savePassword, keepPassword, skipFactor: String
    let otherWay, continueWith: String
    let forgottenAdvice, mailAdvice, smsAdvice, linkSent, codeSent, mayResend, resendIn, seconds, asking: String
    let waitAtLeast, usedCode: String
    let phoneFactor, phoneFactorSent, appFactor: String
    let doneAdvice, unusedAdvice, endedAdvice, elsewhereAdvice, nothingOffered, otherUser, switchUser: String

    static func of(_ language: PageLanguage) -> ScreenText {
        switch language {
        case .english: english
        case .russian: russian
        }
    }

    static let english = ScreenText(
        account: "Account", project: "Project",
        words: "Enter nothing unless the program that asked you to sign in shows the same two words:",
        signIn: "Sign in", signUp: "Create an account", forgotten: "Forgotten password",
        byMail: "Sign in by mail", bySMS: "Sign in by SMS", enterCode: "Enter the code",
        sendAgain: "Send the message again", oneMoment: "One moment", secondFactor: "Second factor",
        newPassword: "New password", signedIn: "Signed in", unused: "Your last entry was not used",
        ended: "The sign-in has ended",
        elsewhere: "Not this browser",
        email: "E-mail address", phone: "Phone number with country code",
        emailOrPhone: "E-mail address, or phone number with country code", password: "Password",
        code: "Code",
        createAccount: "Create the account", haveAccount: "I have an account", sendMail: "Send the mail",
        sendSMS: "Send the SMS", confirm: "Confirm", savePassword: "Save the new password",
        keepPassword: "Keep the old password", skipFactor: "Go on without it",
        otherWay: "Sign in another way", continueWith: "Continue with",
        forgottenAdvice: "You get a mail with a link and a code. Then you can choose a new password.",
        mailAdvice: "You get a mail with a link or a code.", smsAdvice: "You get an SMS with a code.",
        linkSent: "Open the link in the mail on this computer, or enter the code. The mail went to",
        codeSent: "Enter the code of the message that went to", mayResend: "You can ask for another message now.",
        resendIn: "You can ask for another message in", seconds: "seconds.",
        asking: "The project is being asked. This page goes on by itself.",
        waitAtLeast: "Too many attempts. Please wait", usedCode: "If its link was opened, the code is used up.",
        phoneFactor: "A code can be sent to your phone.",
        phoneFactorSent: "Enter the code that was sent to your phone.",
        appFactor: "Enter the code that your authenticator app shows.",
        doneAdvice: "You can close this tab and go back to the program that asked you to sign in.",
        unusedAdvice:
            "What you entered last was not used: its step was done already, or its sign-in has ended. A password that "
            + "you entered there was not saved.",
        endedAdvice:
            "Nothing was changed. The program that asked you to sign in says what happened. You can start again "
            + "there.",
        elsewhereAdvice: "This sign-in was opened in another browser, or its address was used before. Go back to the "
            + "program that asked you to sign in, and open the page from there.",
        nothingOffered: "The project offers no way to sign in here.",
        otherUser:
            "The account is signed in as another user. Nothing was changed. Sign in as that user, or replace that "
            + "user.",
        switchUser: "Replace the other user")

    static let russian = ScreenText(
        account: "Учётная запись", project: "Проект",
        words: "Ничего не вводите, если программа, которая предложила вам войти, не показывает те же два слова:",
        signIn: "Войти", signUp: "Создать аккаунт", forgotten: "Забыли пароль?",
        byMail: "Войти по почте", bySMS: "Войти по SMS", enterCode: "Введите код",
        sendAgain: "Отправить ещё раз", oneMoment: "Один момент", secondFactor: "Второй фактор",
        newPassword: "Новый пароль", signedIn: "Вход выполнен", unused: "Введённое не использовано",
        ended: "Вход завершён без результата",
        elsewhere: "Не этот браузер",
        email: "Адрес почты", phone: "Номер телефона с кодом страны",
        emailOrPhone: "Адрес почты или номер телефона с кодом страны", password: "Пароль",
        code: "Код",
        createAccount: "Создать аккаунт", haveAccount: "У меня есть аккаунт", sendMail: "Отправить письмо",
        sendSMS: "Отправить SMS", confirm: "Подтвердить", savePassword: "Сохранить новый пароль",
        keepPassword: "Оставить старый пароль", skipFactor: "Продолжить без него",
        otherWay: "Войти другим способом", continueWith: "Продолжить через",
        forgottenAdvice: "Вы получите письмо со ссылкой и кодом. Затем можно выбрать новый пароль.",
        mailAdvice: "Вы получите письмо со ссылкой или кодом.", smsAdvice: "Вы получите SMS с кодом.",
        linkSent: "Откройте ссылку из письма на этом компьютере или введите код. Письмо отправлено на",
        codeSent: "Введите код из сообщения, отправленного на", mayResend: "Можно запросить ещё одно сообщение.",
        resendIn: "Новое сообщение можно запросить через", seconds: "с.",
        asking: "Ожидаем ответа проекта. Страница продолжит сама.",
        waitAtLeast: "Слишком много попыток. Подождите", usedCode: "Если ссылку уже открывали, код использован.",
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

    /// A provider's name as people write it.
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
