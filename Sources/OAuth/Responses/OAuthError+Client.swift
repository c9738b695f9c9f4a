public import HTTPMessages

extension OAuthError {
    /// True if the response of an endpoint that authenticates clients rejects the client (RFC 6749 section 5.2): status
    /// 401, or an error with one of these codes at a status below 500.
    public static func rejectsClient(
        in response: HTTPResponse, codes: Set<String> = ["invalid_client", "incorrect_client_credentials"]
    ) -> Bool {
        if response.status == 401 { return true }
        guard (200..<500).contains(response.status), let object = try? ResponseReader.tokenObject(in: response),
            let errorResponse = try? ResponseReader.errorResponse(in: object, status: response.status, of: .token)
        else { return false }
        return codes.contains(errorResponse.code)
    }
}
