package import SandboxModel
package import SystemIO

/// The Share and Action extensions of a device, with the decision for each whether it is offered
/// for attachments. The system evaluates the activation rules of both in the same way (App
/// Extension Programming Guide, "Declaring Supported Data Types for a Share or Action Extension").
package struct ShareOffers: Sendable {
  package let attachments: SharedAttachments
  /// The extensions by app and identifier.
  package let offers: [Offer]
  package let exclusions: [Exclusion]

  /// A kind of extension in the activity sheet, which has a separate row for each kind.
  package enum Kind: String, Sendable, Hashable, CaseIterable {
    case share, action

    /// Returns the kind of an extension point, or nil if the sheet does not show its extensions.
    init?(point: ByteString?) {
      guard let point, let kind = Self.allCases.first(where: { $0.points.contains(point) }) else {
        return nil
      }
      self = kind
    }

    private var points: [ByteString] {
      switch self {
      case .share: [ExtensionPoints.share]
      case .action: ExtensionPoints.actions
      }
    }

    /// The display name.
    package var name: String {
      switch self {
      case .share: "Share"
      case .action: "Action"
      }
    }
  }

  /// An extension and the decision about it.
  package struct Offer: Sendable {
    package let kind: Kind
    package let `extension`: AppExtension
    package let result: ActivationResult
  }

  /// A type that the sharing app excludes. UIActivityViewController.excludedActivityTypes contains
  /// types of activities; an extension's type is its bundle identifier.
  package struct Exclusion: Sendable, Hashable {
    package let type: ByteString
    package let meaning: Meaning
    /// The name of the activity or the point, or nil.
    package let name: String?

    package enum Meaning: String, Sendable, Hashable {
      /// An extension of the device.
      case `extension`
      /// All extensions of an extension point.
      case point
      /// A service of the system, which is not an extension of an app.
      case activity
      case unknown
    }
  }

  /// The conditions of a share.
  package struct Conditions: Sendable {
    let excluded: [ByteString]
    let layout: Layout
    /// The version of the device's system, or nil for the newest.
    let version: SystemVersion?

    /// Creates conditions.
    package init(excluded: [ByteString] = [], layout: Layout, version: SystemVersion?) {
      self.excluded = excluded
      self.layout = layout
      self.version = version
    }
  }

  /// Decides about each Share and Action extension.
  package init(
    _ attachments: SharedAttachments, _ conditions: Conditions, of catalog: ExtensionCatalog,
    points: ExtensionPoints, in tree: TypeTree
  ) {
    self.attachments = attachments
    let found = catalog.extensions.filter { Kind(point: $0.point) != nil }
    exclusions = conditions.excluded.map { Self.exclusion(of: $0, among: found, points) }
    offers = found.compactMap { item in
      Kind(point: item.point).map { kind in
        Offer(
          kind: kind, extension: item,
          result: Self.reason(against: item, of: kind, conditions, points)
            ?? item.rule.result(for: attachments, in: tree))
      }
    }
  }

  /// Returns the decision about an extension that does not depend on its rule, or nil.
  private static func reason(
    against item: AppExtension, of kind: Kind, _ conditions: Conditions, _ points: ExtensionPoints
  ) -> ActivationResult? {
    let types = [item.point, item.identifier.bytes].compactMap(\.self)
    if let type = types.first(where: conditions.excluded.contains) {
      return ActivationResult(verdict: .excluded, reasons: ["'\(type)' is excluded"])
    }
    guard let version = conditions.version, let point = item.point.flatMap(points.point),
      let first = point.first(on: conditions.layout), version < first
    else { return nil }
    return ActivationResult(
      verdict: .notOffered,
      reasons: [
        "the system has \(kind.name) extensions from version \(first), and this is \(version)"
      ])
  }

  private static func exclusion(
    of type: ByteString, among extensions: [AppExtension], _ points: ExtensionPoints
  ) -> Exclusion {
    if let found = extensions.first(where: { $0.identifier.bytes == type }) {
      return Exclusion(
        type: type, meaning: .extension, name: (found.name ?? found.appName)?.description)
    }
    if let point = points.point(type) {
      return Exclusion(type: type, meaning: .point, name: point.name)
    }
    if let activity = points.activity(type) {
      return Exclusion(type: type, meaning: .activity, name: activity.name)
    }
    return Exclusion(type: type, meaning: .unknown, name: nil)
  }

  /// Returns the decisions about the extensions of a kind.
  package func offers(of kind: Kind) -> [Offer] { offers.filter { $0.kind == kind } }

  /// Returns the extensions of a kind, or of all kinds, that are offered.
  package func offered(of kind: Kind? = nil) -> [AppExtension] {
    offers.filter { $0.result.verdict == .offered && (kind == nil || $0.kind == kind) }
      .map(\.extension)
  }
}
