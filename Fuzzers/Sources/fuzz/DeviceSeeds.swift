/// Device records as backups write them, and invalid ones.
enum DeviceSeeds {
  static let all = records.map { (target: "device-record", bytes: Array($0.utf8)) }

  private static let records = [
    record("coresimulator", "apps/org.example.a/data", "6E0F1F6A-2D3B-4C5D-8E9F-0A1B2C3D4E5F"),
    record("coresimulator", "groups/group.org.example", "../../../etc"),
    record("macos", "groups/..%2FLaunchAgents", nil),
    record("macos", "apps/org.example.a/data", nil),
    record("flatpak", "apps/..%2F..%2F.config/data", nil),
    record("flatpak", "apps/org.example.A/settings", nil),
    record("snap", "apps/example/revision", nil, revision: "x12"),
    record("snap", "apps/example/revision", nil, revision: "../../outside"),
    record("folder", "folders/%2E%2E", nil),
    record("android", "apps/com.example.a/data", nil),
    record("xdg", "apps/editor/config", nil),
    record("xdg", "apps/..%2F..%2Fx/files/config", nil),
    record("systemd", "apps/web.service/directories/state/web", nil),
    record("systemd", "apps/web.service/directories/config/sudoers.d", nil),
    record("systemd", "apps/web.service/directories/state/..%2F..%2Fetc", nil),
    record("folder", "harbor/one/plugins/org.example.a.share", nil),
  ]

  private static func record(
    _ layout: String, _ path: String, _ uuid: String?, revision: String? = nil
  ) -> String {
    let uuid = uuid.map { #", "uuid": "\#($0)""# } ?? ""
    let revision = revision.map { #", "revision": "\#($0)""# } ?? ""
    return #"{"identity": "i", "platform": "p", "layout": "\#(layout)", "root": "/r", "#
      + #""containers": [{"path": "\#(path)", "real_path": "/r/c"\#(uuid)\#(revision)}]}"#
  }
}
