public import DesktopBus
internal import StrictJSON

// Desktop notifications, through the helper.
extension HelperConnection {
    /// Showing one takes up to three D-Bus calls, each with a timeout of a few seconds.
    private static let timeout: Duration = .seconds(20)

    /// Shows a notification and replaces another one if that is still shown. If there is no notification server, the
    /// result is `notShown`, not an error. Throws ``HelperError`` if the helper fails.
    public func notify(
        _ notice: Notice, replacing former: ShownNotice? = nil
    ) async throws(HelperError) -> NotificationPresenter.Showing {
        var members = notice.members
        members["do"] = "notify"
        members["replaces"] = former.map { .integer(Int($0.id)) }
        let answer = try await request(members, timeout: HelperConnection.timeout)
        guard let showing = NotificationPresenter.Showing(members: answer.members) else { throw .ended }
        return showing
    }

    /// Closes a notification if it is still shown. Throws ``HelperError`` if the helper fails.
    public func closeNotice(_ notice: ShownNotice) async throws(HelperError) {
        let members = JSONObject([.init("do", "close_notice"), .init("notice", .integer(Int(notice.id)))])
        _ = try await request(members, timeout: HelperConnection.timeout)
    }
}
