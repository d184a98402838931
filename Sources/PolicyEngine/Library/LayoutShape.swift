internal import SandboxModel

/// Which names a layout has at the top of its containers, so that a rule for any other is known to
/// be a slip of the pen.
struct LayoutShape: Sendable {
  private let known: PatternComponent?

  /// The shape of a kind of container; where nothing is known, every name is possible.
  init(_ layout: Layout, _ kind: ContainerKind) {
    let text: String? =
      switch (layout, kind) {
      case (.coreSimulator, .data), (.coreSimulator, .extension):
        "{Documents,Library,tmp,SystemData,StoreKit,CloudKit,GeoJSON,.*}"
      case (.coreSimulator, .bundle): "{*.app,iTunesMetadata.plist,BundleMetadata.plist,.*}"
      case (.flatpak, .data): "{data,config,cache,.*}"
      default: nil
      }
    known = text.flatMap { try? Pattern(parsing: $0) }?.components.first?.name
  }

  /// Whether a pattern can match in a container: its first component must be able to name what the
  /// layout has there.
  func canMatch(_ pattern: Pattern) -> Bool {
    guard let known, case .name(let first)? = pattern.components.first else { return true }
    return !first.commonNames(with: known).isEmpty
  }

  /// What the container may have, as messages list it; empty where nothing is known.
  var names: [String] { known?.literals.map { String(decoding: $0, as: UTF8.self) } ?? [] }
}
