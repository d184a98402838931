package import Codecs

/// The attributes of an app's `AndroidManifest.xml` that concern backups.
///
/// Source: developer.android.com, "<application>"; AOSP, `core/res/res/values/public-final.xml`.
package struct AndroidAppManifest: Hashable, Sendable {
  package var package: String
  /// `android:versionCode`; nil if absent.
  package var versionCode: Int64?
  /// `android:targetSdkVersion`, or `android:minSdkVersion` if it is absent; nil without both.
  package var targetVersion: Int?
  /// `android:allowBackup`: `true`, `false`, or a resource; nil if absent, which is true.
  package var allowBackup: String?
  /// `android:fullBackupContent`: `true`, `false`, or a resource; nil if absent.
  package var fullBackupContent: String?
  /// `android:dataExtractionRules`: a resource; nil if absent.
  package var dataExtractionRules: String?
  /// Whether the app has code of its own for backups (`android:backupAgent`).
  package var hasAgent: Bool
  /// `android:fullBackupOnly`: `true`, `false`, or a resource; nil if absent, which is false.
  package var fullBackupOnly: String?

  /// The numbers of the attributes (`android.R.attr`).
  private enum Attribute {
    static let leastVersion: UInt32 = 0x0101_020c
    static let versionCode: UInt32 = 0x0101_021b
    static let targetVersion: UInt32 = 0x0101_0270
    static let backupAgent: UInt32 = 0x0101_027f
    static let allowBackup: UInt32 = 0x0101_0280
    static let fullBackupOnly: UInt32 = 0x0101_0473
    static let fullBackupContent: UInt32 = 0x0101_04eb
    static let dataExtractionRules: UInt32 = 0x0101_0632
  }

  /// Reads a manifest as text or in binary form.
  package init(_ bytes: [UInt8]) throws(CodecError) {
    let root = try AndroidXML(bytes)
    guard root.name == "manifest", let package = root.value("package"), !package.isEmpty else {
      throw CodecError(
        .malformed, in: .androidXML, reason: "it is not the manifest of an app", at: root.position)
    }
    self.package = package
    versionCode = root.value("versionCode", resource: Attribute.versionCode).flatMap { Int64($0) }
    let system = root.children.first { $0.name == "uses-sdk" }
    targetVersion =
      (system?.value("targetSdkVersion", resource: Attribute.targetVersion)
      ?? system?.value("minSdkVersion", resource: Attribute.leastVersion)).flatMap { Int($0) }
    let application = root.children.first { $0.name == "application" }
    func value(_ name: String, _ number: UInt32) -> String? {
      application?.value(name, resource: number)
    }
    allowBackup = value("allowBackup", Attribute.allowBackup)
    fullBackupContent = value("fullBackupContent", Attribute.fullBackupContent)
    dataExtractionRules = value("dataExtractionRules", Attribute.dataExtractionRules)
    hasAgent = value("backupAgent", Attribute.backupAgent)?.isEmpty == false
    fullBackupOnly = value("fullBackupOnly", Attribute.fullBackupOnly)
  }
}
