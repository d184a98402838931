import Codecs
import SandboxModel
import SystemIO

@testable import InterApp

extension Target {
  /// The declarations of apps, and URLs.
  static let interAppTargets = [
    Target(name: "url", run: url),
    Target(name: "app-declarations", run: appDeclarations),
    Target(name: "strings-file", run: stringsFile),
    Target(name: "activation-predicate", run: activationPredicate),
    Target(name: "activation-rule", run: activationRule),
  ]

  /// A URL. Its parts must form the same URL again.
  @Sendable private static func url(_ bytes: [UInt8]) {
    guard let url = try? URLText(reading: ByteString(bytes)) else { return }
    var text = url.scheme.concatenating(":")
    if let authority = url.authority { text = text.concatenating("//").concatenating(authority) }
    text = text.concatenating(url.path)
    if let query = url.query { text = text.concatenating("?").concatenating(query) }
    if let fragment = url.fragment { text = text.concatenating("#").concatenating(fragment) }
    require(text == url.bytes, "the parts of '\(url.bytes)' result in '\(text)'")
    let received = url.received
    require(received.queryItems.count <= url.bytes.count, "too many query items")
    _ = url.remarks
  }

  /// An Info.plist. The types must not have a cycle, and no invalid name is registered.
  @Sendable private static func appDeclarations(_ bytes: [UInt8]) {
    guard let list = try? PropertyList(reading: bytes, limits: .init(bytes: 1 << 20)),
      let app = BundleIdentifier("org.example.notebook")
    else { return }
    let read = AppDeclarations(app, name: nil, info: list)
    let tree = TypeTree(system: TypeTable(), apps: read.types)
    for type in read.types {
      for parent in type.conformsTo where tree.distance(from: type.identifier, to: parent) == 1 {
        require(!tree.conforms(parent, to: type.identifier), "'\(type.identifier)' is in a cycle")
      }
    }
    for scheme in read.urlTypes.flatMap(\.schemes) {
      require(URLText.fault(ofScheme: scheme) == nil, "the scheme '\(scheme)' is registered")
    }
  }

  /// A predicate of an activation rule. It is either refused with a position or has a result.
  @Sendable private static func activationPredicate(_ bytes: [UInt8]) {
    let text = String(decoding: bytes, as: UTF8.self)
    do throws(PredicateFault) {
      let predicate = try ActivationPredicate(reading: text)
      let result = try predicate.result(for: attachments, in: TypeTree(system: TypeTable()))
      require(result.unmatched.allSatisfy { $0 < attachments.all.count }, "an unknown attachment")
    } catch {
      require(error.line >= 1 && error.column >= 1, "a fault at \(error.line):\(error.column)")
    }
  }

  /// The Info.plist of an extension.
  @Sendable private static func activationRule(_ bytes: [UInt8]) {
    guard let list = try? PropertyList(reading: bytes, limits: .init(bytes: 1 << 20)),
      let app = BundleIdentifier("org.example.notebook"),
      let identifier = BundleIdentifier("org.example.notebook.share")
    else { return }
    let item = AppExtension(
      App.Extension(identifier: identifier, path: "A.app/PlugIns/A.appex"),
      of: App(app, isInstalled: true), info: list)
    let result = item.rule.result(for: attachments, in: TypeTree(system: TypeTable()))
    require(!result.reasons.isEmpty, "no reason for \(result.verdict)")
    require(result.unmatched.allSatisfy { $0 < attachments.all.count }, "an unknown attachment")
  }

  private static let attachments = SharedAttachments([
    .text("x"), .file("y", of: TypeIdentifier("public.png") ?? SharedAttachment.plainText),
  ])

  /// A strings file.
  @Sendable private static func stringsFile(_ bytes: [UInt8]) {
    let keys = StringsFile.keys(bytes)
    require((keys?.count ?? 0) <= bytes.count, "more keys than bytes")
  }
}

/// URLs, property lists and strings files.
enum InterAppSeeds {
  static let all: [(target: String, bytes: [UInt8])] =
    urls.map { ("url", Array($0.utf8)) }
    + lists.map { ("app-declarations", Array($0.utf8)) }
    + strings.map { ("strings-file", Array($0.utf8)) }
    + predicates.map { ("activation-predicate", Array($0.utf8)) }
    + rules.map { ("activation-rule", Array($0.utf8)) }

  private static let predicates = [
    """
    SUBQUERY(extensionItems, $i, SUBQUERY($i.attachments, $a,
    ANY $a.registeredTypeIdentifiers UTI-CONFORMS-TO "public.png" || NOT
    NONE $a.registeredTypeIdentifiers BEGINSWITH[c] 'public.').@count ==
    $i.attachments.@count).@count >= 1
    """,
    "count(extensionItems) BETWEEN {-1 + 2 * 3, 4} OR extensionItems[FIRST].attachments[SIZE] <> 2",
  ]

  private static let rules = [
    """
    <plist><dict><key>NSExtension</key><dict><key>NSExtensionPointIdentifier</key>
    <string>com.apple.share-services</string><key>NSExtensionAttributes</key><dict>
    <key>NSExtensionActivationRule</key><dict>
    <key>NSExtensionActivationSupportsImageWithMaxCount</key><integer>1</integer>
    <key>NSExtensionActivationSupportsText</key><true/>
    <key>NSExtensionActivationDictionaryVersion</key><integer>2</integer>
    </dict></dict></dict></dict></plist>
    """
  ]

  private static let urls = [
    "note://me:secret@host:8080/a%20b;p=1/c?x=1&y=%41+b&z&=#part",
    "mailto:a;b@example.com?subject=x",
    "http://[::1]:80/x", "a:%00",
  ]

  private static let lists = [
    """
    <plist><dict><key>UTExportedTypeDeclarations</key><array>
    <dict><key>UTTypeIdentifier</key><string>com.a.one</string><key>UTTypeConformsTo</key>
    <array><string>com.a.two</string></array></dict>
    <dict><key>UTTypeIdentifier</key><string>com.a.two</string><key>UTTypeConformsTo</key>
    <string>com.a.one</string></dict></array></dict></plist>
    """,
    """
    <plist><dict><key>CFBundleURLTypes</key><array><dict><key>CFBundleURLName</key>
    <string>com.a</string><key>CFBundleURLSchemes</key><array><string>a</string>
    <string>$(B)</string></array></dict></array><key>CFBundleDocumentTypes</key><array><dict>
    <key>CFBundleTypeName</key><string>D</string><key>LSItemContentTypes</key><array>
    <string>public.data</string></array><key>LSHandlerRank</key><string>Owner</string></dict>
    </array></dict></plist>
    """,
  ]

  private static let strings = ["/* a */ \"b\" = \"c\\\"\"; // d\ne = f;\n"]
}
