package import SystemIO

/// The file `_manifest` that precedes the data of each package in an Android backup: lines of text.
///
/// Android restores a package only if its certificates are listed and are those of the installed
/// app, or if the backup has its APK. A manifest that another program creates without them is
/// useful only to readers of archives.
///
/// Source: AOSP, `AppMetadataBackupWriter.java` (`getManifestBytes`), `TarBackupReader.java`.
package struct AndroidManifest: Hashable, Sendable {
  package var package: ByteString
  /// The app's version code; 0 if unknown.
  package var versionCode: Int64
  /// The API level of the system that wrote the backup; 0 if unknown.
  package var platformVersion: Int64
  /// The package that installed the app; empty if unknown.
  package var installer: ByteString
  /// Whether the backup has the app's APK.
  package var hasPackageFile: Bool
  /// The app's certificates in hexadecimal.
  package var certificates: [ByteString]

  /// The maximum size of the file in bytes, as Android accepts it.
  package static let sizeLimit = 64 << 10
  private static let version = 1

  /// Creates a manifest of the known facts.
  package init(
    package: ByteString, versionCode: Int64 = 0, platformVersion: Int64 = 0,
    installer: ByteString = "", hasPackageFile: Bool = false, certificates: [ByteString] = []
  ) {
    self.package = package
    self.versionCode = versionCode
    self.platformVersion = platformVersion
    self.installer = installer
    self.hasPackageFile = hasPackageFile
    self.certificates = certificates
  }

  /// Parses the content of the file, or returns nil if it is not valid.
  package init?(_ bytes: [UInt8]) {
    guard bytes.count < Self.sizeLimit else { return nil }
    var lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)[...]
    func number() -> Int64? {
      lines.popFirst().flatMap { Int64(String(decoding: $0, as: UTF8.self)) }
    }
    guard number() == Int64(Self.version), let package = lines.popFirst(), !package.isEmpty,
      let code = number(), let platform = number(), let installer = lines.popFirst(),
      let flag = lines.popFirst(), let count = number(), count >= 0, count <= lines.count
    else { return nil }
    self.package = ByteString(package)
    versionCode = code
    platformVersion = platform
    self.installer = ByteString(installer)
    hasPackageFile = flag.elementsEqual("1".utf8)
    certificates = lines.prefix(Int(count)).map { ByteString($0) }
  }

  /// Whether Android can restore the package's data with this manifest.
  package var isRestorable: Bool { !certificates.isEmpty }

  /// Returns the content of the file.
  package func encoded() -> [UInt8] {
    let head: [ByteString] = [
      ByteString("\(Self.version)"), package, ByteString("\(versionCode)"),
      ByteString("\(platformVersion)"), installer, hasPackageFile ? "1" : "0",
      ByteString("\(certificates.count)"),
    ]
    return (head + certificates).flatMap { $0.bytes + [UInt8(ascii: "\n")] }
  }
}
