public import RingbackBase

/// Messages for users, in English and Russian. Raw values are stable names.
public enum UserMessage: String, Sendable, CaseIterable {
    case network
    case signInFailed = "sign_in_failed"
    case sessionEnded = "session_ended"
    case sessionNotRenewed = "session_not_renewed"
    case serviceDown = "service_down"
    case tooManyAttempts = "too_many_attempts"
    case wrongCode = "wrong_code"
    case unknownUser = "unknown_user"
    case emailTaken = "email_taken"
    case phoneTaken = "phone_taken"
    case wrongCredentials = "wrong_credentials"
    case wrongPassword = "wrong_password"
    case passwordNeeded = "password_needed"
    case weakPassword = "weak_password"
    case samePassword = "same_password"
    case invalidEmail = "invalid_email"
    case invalidPhone = "invalid_phone"
    case checkEmail = "check_email"
    case unconfirmedEmail = "unconfirmed_email"
    case unconfirmedPhone = "unconfirmed_phone"
    case blocked
    case signUpClosed = "sign_up_closed"
    case notOffered = "not_offered"
    case linkExpired = "link_expired"
    case codeExpired = "code_expired"
    case secondFactorNeeded = "second_factor_needed"
    case nameTaken = "name_taken"
    case tooManyFactors = "too_many_factors"
    case signInAgain = "sign_in_again"
    case puzzle
    case messageNotSent = "message_not_sent"
    case lastIdentity = "last_identity"
    case managed
    case oneConfirmed = "one_confirmed"
    case olderLink = "older_link"
    case messageSentAlready = "message_sent_already"
    case choosePassword = "choose_password"

    public func text(in language: Language) -> String {
        switch language {
        case .english: english
        case .russian: russian
        }
    }

    private var english: String {
        switch self {
        case .network: "Connection failed. Please check your internet and try again."
        case .signInFailed: "Sign in failed. Please try again."
        case .sessionEnded: "Session expired. Please sign in again."
        case .sessionNotRenewed: "The session cannot be renewed. Please sign in again."
        case .serviceDown: "Service temporarily unavailable. Please try again later."
        case .tooManyAttempts: "Too many attempts. Please wait a few minutes."
        case .wrongCode: "Invalid code. Please try again."
        case .unknownUser: "Account not found. Please sign up."
        case .emailTaken: "This email is already associated with another account."
        case .phoneTaken: "This phone number is already associated with another account."
        case .wrongCredentials: "Wrong email, phone number or password. Please try again."
        case .wrongPassword: "Wrong password. Please try again."
        case .passwordNeeded: "Please enter your current password."
        case .weakPassword: "This password is too weak. Please choose another one."
        case .samePassword: "This is your current password. Please choose another one."
        case .invalidEmail: "Please enter a valid email address."
        case .invalidPhone: "Please enter a valid phone number with its country code."
        case .checkEmail: "Check your email."
        case .unconfirmedEmail: "Please confirm your email address first."
        case .unconfirmedPhone: "Please confirm your phone number first."
        case .blocked: "This account is blocked."
        case .signUpClosed: "New accounts are not accepted."
        case .notOffered: "This way to sign in is not available."
        case .linkExpired: "This link is invalid or has expired. Please request a new one."
        case .codeExpired: "This code has expired. Please request a new one."
        case .secondFactorNeeded: "Please confirm with your second factor first."
        case .nameTaken: "This name is already used. Please choose another one."
        case .tooManyFactors: "You have too many of them. Please remove one first."
        case .signInAgain: "Please sign in again to make this change."
        case .puzzle: "Please confirm that you are not a robot and try again."
        case .messageNotSent: "The message could not be sent. Please try again later."
        case .lastIdentity: "This is the only way to sign in to your account. Please add another one first."
        case .managed: "Your organization manages this account."
        case .oneConfirmed: "Confirmed. Now confirm at the other address, too."
        case .olderLink: "This link is from an older message. Please open the newest one."
        case .messageSentAlready: "A message was sent already. Please wait a minute before the next one."
        case .choosePassword: "Now choose a new password."
        }
    }

    private var russian: String {
        switch self {
        case .network: "Нет соединения. Проверьте интернет и попробуйте снова."
        case .signInFailed: "Не удалось войти. Попробуйте ещё раз."
        case .sessionEnded: "Сеанс истёк. Войдите снова."
        case .sessionNotRenewed: "Не удаётся продлить сеанс. Войдите снова."
        case .serviceDown: "Сервис временно недоступен. Попробуйте позже."
        case .tooManyAttempts: "Слишком много попыток. Подождите несколько минут."
        case .wrongCode: "Неверный код. Попробуйте ещё раз."
        case .unknownUser: "Аккаунт не найден. Зарегистрируйтесь."
        case .emailTaken: "Этот адрес почты уже связан с другим аккаунтом."
        case .phoneTaken: "Этот номер телефона уже связан с другим аккаунтом."
        case .wrongCredentials: "Неверный адрес почты, номер телефона или пароль. Попробуйте ещё раз."
        case .wrongPassword: "Неверный пароль. Попробуйте ещё раз."
        case .passwordNeeded: "Введите текущий пароль."
        case .weakPassword: "Слишком простой пароль. Выберите другой."
        case .samePassword: "Это ваш текущий пароль. Выберите другой."
        case .invalidEmail: "Введите правильный адрес почты."
        case .invalidPhone: "Введите правильный номер телефона с кодом страны."
        case .checkEmail: "Проверьте почту."
        case .unconfirmedEmail: "Сначала подтвердите адрес почты."
        case .unconfirmedPhone: "Сначала подтвердите номер телефона."
        case .blocked: "Этот аккаунт заблокирован."
        case .signUpClosed: "Регистрация новых аккаунтов закрыта."
        case .notOffered: "Этот способ входа недоступен."
        case .linkExpired: "Ссылка недействительна или устарела. Запросите новую."
        case .codeExpired: "Срок действия кода истёк. Запросите новый."
        case .secondFactorNeeded: "Сначала подтвердите вход вторым фактором."
        case .nameTaken: "Это имя уже занято. Выберите другое."
        case .tooManyFactors: "Их слишком много. Сначала удалите один."
        case .signInAgain: "Чтобы внести это изменение, войдите снова."
        case .puzzle: "Подтвердите, что вы не робот, и попробуйте ещё раз."
        case .messageNotSent: "Не удалось отправить сообщение. Попробуйте позже."
        case .lastIdentity: "Это единственный способ войти в ваш аккаунт. Сначала добавьте другой."
        case .managed: "Этим аккаунтом управляет ваша организация."
        case .oneConfirmed: "Подтверждено. Теперь подтвердите и на другом адресе."
        case .olderLink: "Эта ссылка из старого письма. Откройте самое новое."
        case .messageSentAlready: "Сообщение уже отправлено. Подождите минуту перед следующим."
        case .choosePassword: "Теперь выберите новый пароль."
        }
    }
}
