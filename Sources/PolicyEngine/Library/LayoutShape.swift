internal import SandboxModel

/// The names that a layout has at the top of its containers, to detect misspelled rules.
struct LayoutShape: Sendable {
  private let known: Pattern.Name?

  /// Creates the shape of a container kind; if none is known, every name is possible.
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

  /// Whether a pattern can match in a container, judged by its first component.
  func canMatch(_ pattern: Pattern) -> Bool {
    guard let known, case .name(let first)? = pattern.components.first else { return true }
    return !first.commonNames(with: known).isEmpty
  }

  /// The possible names, for messages; empty if unknown.
  var names: [String] { known?.literals.map { String(decoding: $0, as: UTF8.self) } ?? [] }
}
