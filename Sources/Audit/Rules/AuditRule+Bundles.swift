/// Rules about an app's bundle and its declarations.
extension AuditRule {
  static let ofBundles = [
    bundleChanged, extensionBuild, launchInterface, documentType, persistentWiFi,
  ]

  static let bundleChanged = AuditRule(
    id: "bundle-changed", level: .error,
    title: "a bundle has changed since its installation",
    advice: """
      The platform refuses to start an app whose files differ from its signature, and an update \
      replaces the whole bundle. Store data in the data container, and install the app again.
      """,
    source: "Technical Note TN2206, macOS Code Signing In Depth, Signature resource envelope",
    url: "https://developer.apple.com/library/archive/technotes/tn2206/_index.html")

  static let extensionBuild = AuditRule(
    id: "extension-build", level: .error,
    title: "an extension has another build than its app",
    advice: """
      The store refuses such a package, and an update checks the builds. Set CFBundleVersion of \
      each extension to that of the app.
      """,
    source: "Information Property List, CFBundleVersion; docs/update.md",
    url: bundleResources + "cfbundleversion")

  static let launchInterface = AuditRule(
    id: "launch-interface", level: .error,
    title: "an extension names both or neither of a storyboard and a principal class",
    advice: """
      The system does not load an extension with both keys, and has nothing to start without one. \
      Name NSExtensionMainStoryboard or NSExtensionPrincipalClass.
      """,
    source: "Information Property List, NSExtensionMainStoryboard",
    url: bundleResources + "nsextension/nsextensionmainstoryboard")

  static let documentType = AuditRule(
    id: "document-type", level: .error,
    title: "a document type lacks its name or its types",
    advice: """
      Other apps cannot offer files to this one. Each element of CFBundleDocumentTypes needs \
      CFBundleTypeName and at least one type in LSItemContentTypes.
      """,
    source: "Information Property List, CFBundleDocumentTypes",
    url: bundleResources + "cfbundledocumenttypes")

  static let persistentWiFi = AuditRule(
    id: "persistent-wifi", level: .note,
    title: "the app keeps Wi-Fi on while it runs",
    advice: """
      The system opens a Wi-Fi connection at launch and never closes it, which costs power. Remove \
      UIRequiresPersistentWiFi unless the app transfers data all the time.
      """,
    source: "Information Property List, UIRequiresPersistentWiFi",
    url: bundleResources + "uirequirespersistentwifi")

  private static let bundleResources =
    "https://developer.apple.com/documentation/bundleresources/information-property-list/"
}
