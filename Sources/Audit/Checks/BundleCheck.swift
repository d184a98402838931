internal import Codecs
internal import DeviceScan
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// The declarations of apps and extensions, and the builds of extensions.
enum BundleCheck: AuditCheck {
  /// Extension points whose extensions need neither key: the system starts their code without one
  /// (WidgetKit; ExtensionKit has separate declarations), or another key names a delegate class
  /// (WatchKit, WKExtensionDelegateClassName).
  private static let selfStarting: Set<String> = [
    "com.apple.watchkit", "com.apple.widgetkit-extension",
  ]

  static func run(_ context: AuditContext, into findings: inout FindingCollector) {
    if !context.isApple { return }
    for scan in context.scan.containers where scan.container.kind == .bundle {
      let (found, unusable) = context.declarations(in: scan)
      for list in unusable {
        findings.addUnusable(
          scan.container.logicalPrefix.appending(list.path), because: list.reason)
      }
      let topic = Topic(scan: scan, context: context)
      for declarations in found {
        topic.checkDocuments(declarations, &findings)
        if declarations.isExtension {
          topic.checkInterface(declarations, &findings)
        } else {
          topic.checkNetwork(declarations, &findings)
        }
      }
      topic.checkBuilds(&findings)
    }
  }

  /// The bundle container that is examined.
  private struct Topic {
    let scan: ContainerScan
    let context: AuditContext

    private func finding(
      _ rule: AuditRule, _ declarations: BundleDeclarations, detail: String, key: String = "",
      mend words: [ByteString]
    ) -> AuditFinding {
      let real = scan.container.absolutePath.appending(declarations.path)
      return context.finding(
        rule, declarations.path, in: scan.container, detail: detail, key: key,
        command: .other(program: "plutil", words + [real]))
    }

    func checkNetwork(_ declarations: BundleDeclarations, _ findings: inout FindingCollector) {
      let key = "UIRequiresPersistentWiFi"
      guard declarations.list[key] == .bool(true) else { return }
      findings.add(
        finding(
          .persistentWiFi, declarations, detail: "\(key) is set",
          mend: ["-remove", ByteString(key)]))
    }

    func checkInterface(_ declarations: BundleDeclarations, _ findings: inout FindingCollector) {
      guard let own = declarations.list["NSExtension"] else { return }
      if own.dictionaryValue == nil {
        return findings.add(
          finding(
            .launchInterface, declarations,
            detail: "NSExtension has the type \(own.kind), not dictionary", key: "type",
            mend: ["-lint"]))
      }
      let (storyboard, principal) = ("NSExtensionMainStoryboard", "NSExtensionPrincipalClass")
      switch (own[storyboard] != nil, own[principal] != nil) {
      case (true, true):
        findings.add(
          finding(
            .launchInterface, declarations, detail: "it names both", key: "both",
            mend: ["-remove", ByteString("NSExtension.\(principal)")]))
      case (false, false):
        if selfStarting.contains(own["NSExtensionPointIdentifier"]?.stringValue ?? "")
          || Self.hasOwnKey(own)
        {
          return
        }
        findings.add(
          finding(
            .launchInterface, declarations, detail: "it names neither", key: "neither",
            mend: ["-insert", ByteString("NSExtension.\(principal)"), "-string", "CLASS"]))
      default: break
      }
    }

    /// Whether an extension of Xcode's editor names its principal class: Xcode reads a separate key
    /// (XcodeKit; Xcode's template of a Source Editor Extension).
    private static func hasOwnKey(_ list: PropertyList) -> Bool {
      list["NSExtensionPointIdentifier"]?.stringValue
        == "com.apple.dt.Xcode.extension.source-editor"
        && list["NSExtensionAttributes"]?["XCSourceEditorExtensionPrincipalClass"] != nil
    }

    func checkDocuments(_ declarations: BundleDeclarations, _ findings: inout FindingCollector) {
      let key = "CFBundleDocumentTypes"
      guard let value = declarations.list[key] else { return }
      guard let types = value.arrayValue else {
        return findings.add(
          finding(
            .documentType, declarations,
            detail: "\(key) has the type \(value.kind), not array", key: "type",
            mend: ["-lint"]))
      }
      for (number, type) in types.enumerated() {
        let faults = Self.faults(of: type)
        if faults.isEmpty { continue }
        findings.add(
          finding(
            .documentType, declarations,
            detail: "element \(number) \(faults.map(\.text).joined(separator: " and "))",
            key: "\(number)", mend: faults[0].command(inElement: number)))
      }
    }

    /// A fault of a document type, with the key and a value that fix it.
    private struct Fault {
      let text: String
      let key: String
      let sample: [ByteString]

      /// Returns the arguments of `plutil` that add the key to an element or, if the element itself
      /// is wrong, those that check the list.
      func command(inElement number: Int) -> [ByteString] {
        if key.isEmpty { return ["-lint"] }
        return ["-insert", ByteString("CFBundleDocumentTypes.\(number).\(key)")] + sample
      }
    }

    private static func faults(of type: PropertyList) -> [Fault] {
      guard type.dictionaryValue != nil else {
        return [Fault(text: "has the type \(type.kind), not dictionary", key: "", sample: [])]
      }
      var faults: [Fault] = []
      if type["CFBundleTypeName"]?.stringValue?.isEmpty ?? true {
        faults.append(
          Fault(text: "has no name", key: "CFBundleTypeName", sample: ["-string", "NAME"]))
      }
      let keys = [
        "LSItemContentTypes", "CFBundleTypeExtensions", "CFBundleTypeMIMETypes",
        "CFBundleTypeOSTypes",
      ]
      let hasTypes = keys.contains { key in
        type[key]?.arrayValue?.contains { $0.stringValue?.isEmpty == false } ?? false
      }
      if !hasTypes {
        faults.append(
          Fault(text: "has no type", key: "LSItemContentTypes", sample: ["-array"]))
      }
      return faults
    }

    /// Compares the build of each extension with that of its app.
    func checkBuilds(_ findings: inout FindingCollector) {
      guard let app = context.device.apps.first(where: { $0.identifier == scan.container.owner }),
        let build = app.build
      else { return }
      for own in app.extensions {
        guard let other = own.build, other != build else { continue }
        findings.add(
          context.finding(
            .extensionBuild, own.path, in: scan.container, isDirectory: true,
            detail: "it has the build \(other) and the app \(build)",
            command: .change(["update", "PACKAGE"])))
      }
    }
  }
}
