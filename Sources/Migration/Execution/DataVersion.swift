internal import AppPackages
internal import DeviceDiscovery
internal import SystemIO

/// The version of the app that last used data, as stated in files of the data.
///
/// Mozilla's programs write `compatibility.ini` in each profile (toolkit/xre/nsAppRunner.cpp), as
/// `LastVersion=128.0_20240704121409/20240704121409`. Chromium and its relatives write `Last
/// Version` next to the profiles (chrome/browser/downgrade/user_data_downgrade.cc). Both refuse or
/// reset data of a newer version.
enum DataVersion {
  /// Returns the newest of the stated versions, or nil if none is stated. The files count even if
  /// the target has others in their place, as it has once the app was started there.
  static func newest(of plan: MigrationPlan, reading source: MigrationHome) -> AppVersion? {
    var newest: AppVersion?
    for moves in [plan.moves, plan.present, plan.conflicts.map(\.move)] {
      for move in moves where move.entry.kind == .file && isStated(by: move.entry.path) {
        guard let version = stated(by: move.entry.path, reading: source) else { continue }
        if newest?.isEarlier(than: version) ?? true { newest = version }
      }
    }
    return newest
  }

  private static let mozilla: ByteString = "compatibility.ini"
  private static let chromium: ByteString = "Last Version"

  private static func isStated(by path: ByteString) -> Bool {
    path.lastComponent == mozilla || path.lastComponent == chromium
  }

  private static func stated(by path: ByteString, reading source: MigrationHome) -> AppVersion? {
    guard let file = try? source.file(path),
      let bytes = try? file.readAll(limit: 1 << 16)
    else { return nil }
    return stated(in: bytes, isMozilla: path.lastComponent == mozilla)
  }

  /// Returns the version that the content of a file states, or nil if it states none.
  ///
  /// - Parameter isMozilla: Whether it is that of `compatibility.ini`, otherwise of `Last Version`.
  static func stated(in bytes: [UInt8], isMozilla: Bool) -> AppVersion? {
    let text =
      isMozilla ? KeyValueFile(bytes).value("LastVersion", in: "Compatibility") : ByteString(bytes)
    return text.flatMap { parsed($0) }.map { AppVersion(version: $0, build: nil) }
  }

  /// Returns the version at the start of a text: digits, dots and letters.
  private static func parsed(_ text: ByteString) -> ByteString? {
    let version = text.bytes.prefix { byte in
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
        UInt8(ascii: "."):
        true
      default: false
      }
    }
    guard let first = version.first, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first),
      version.count <= 64
    else { return nil }
    return ByteString(version)
  }
}
