package import SandboxModel

/// An unexpected value in the declarations of an app.
package struct DeclarationFinding: Sendable, Hashable {
  package let severity: Finding.Severity
  package let app: BundleIdentifier
  /// The position in the Info.plist: `CFBundleURLTypes[2].CFBundleURLSchemes`.
  package let key: String
  /// A sentence for people.
  package let reason: String

  /// Creates a finding.
  package init(
    _ severity: Finding.Severity, of app: BundleIdentifier, at key: String, reason: String
  ) {
    self.severity = severity
    self.app = app
    self.key = key
    self.reason = reason
  }
}
