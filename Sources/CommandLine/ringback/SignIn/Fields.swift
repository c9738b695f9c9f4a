import RingbackClient
import StrictJSON

extension SignInOptions {
    /// The request's body. Secrets are read now, each from the place that was named for it.
    func fields(_ input: SecretInput) throws(RingbackError) -> JSONObject {
        var fields = JSONObject([.init("method", .string(method.rawValue))])
        fields["oauth_provider"] = upstream.map { .string($0) }
        fields["from_account"] = fromAccount.map { .string($0) }
        fields["email"] = email.map { .string($0) }
        fields["phone"] = phone.map { .string($0) }
        fields["channel"] = channel.map { .string($0.rawValue) }
        fields["domain"] = domain.map { .string($0) }
        fields["provider_id"] = providerID.map { .string($0) }
        fields["data"] = data.flatMap(JSONInput.object).map { .object($0) }
        SignInOptions.addRequest(to: &fields, scopes: scopes, parameters)
        if noPersist { fields["persist"] = false }
        if providerToken { fields["provider_token"] = true }
        if noCreateUser { fields["create_user"] = false }
        try addSecrets(to: &fields, input)
        if let captchaDescriptor {
            fields["captcha_token"] = .string(try input.read("CAPTCHA token", from: captchaDescriptor))
        }
        return fields
    }

    /// Adds what is requested from the provider beyond the account's configuration. The parameters are `NAME=VALUE`.
    static func addRequest(to fields: inout JSONObject, scopes: String?, _ parameters: [String]) {
        fields["scopes"] = scopes.map { .string($0) }
        guard !parameters.isEmpty else { return }
        var params = JSONObject()
        for parameter in parameters {
            let name = parameter.prefix { $0 != "=" }
            params[String(name)] = .string(String(parameter[name.endIndex...].dropFirst()))
        }
        fields["params"] = .object(params)
    }

    private func addSecrets(to fields: inout JSONObject, _ input: SecretInput) throws(RingbackError) {
        switch method {
        case .browser, .device, .otp, .magicLink, .passkey, .page, .anonymous, .sso: break
        case .password: fields["password"] = .string(try input.read("password", from: passwordDescriptor))
        case .signUp: fields["password"] = .string(try input.readNew("new password", from: passwordDescriptor))
        // Without `--from` and `--with` the daemon takes the account's id_token_account.
        case .idToken where fromAccount != nil || upstream == nil: break
        case .idToken: try SignInOptions.addIDToken(to: &fields, tokens, input)
        case .session:
            // An account of OAuth needs the refresh token alone. The daemon says where both are needed.
            if accessTokenDescriptor != nil || refreshTokenDescriptor == nil {
                fields["access_token"] = .string(try input.read("access token", from: accessTokenDescriptor))
            }
            fields["refresh_token"] = .string(try input.read("refresh token", from: refreshTokenDescriptor))
        }
    }

    private var tokens: IDTokenDescriptors {
        IDTokenDescriptors(idToken: idTokenDescriptor, nonce: nonceDescriptor, accessToken: accessTokenDescriptor)
    }

    /// Where an ID token and what belongs to it are read.
    struct IDTokenDescriptors {
        let idToken: Int32?
        let nonce: Int32?
        let accessToken: Int32?
    }

    /// The nonce may be missing. An access token is read only from a descriptor that was named for it.
    static func addIDToken(
        to fields: inout JSONObject, _ descriptors: IDTokenDescriptors, _ input: SecretInput
    ) throws(RingbackError) {
        fields["id_token"] = .string(try input.read("ID token", from: descriptors.idToken))
        // If the token came from a descriptor of its own, standard input is not read for the nonce.
        if descriptors.nonce != nil || descriptors.idToken == nil {
            let nonce = try input.readOptional("raw nonce", from: descriptors.nonce, hint: ", empty for none")
            fields["nonce"] = nonce.map { .string($0) }
        }
        if let descriptor = descriptors.accessToken {
            fields["access_token"] = .string(try input.read("access token", from: descriptor))
        }
    }
}
