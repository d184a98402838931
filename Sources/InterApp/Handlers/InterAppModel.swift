internal import SandboxModel
internal import SystemIO

/// The inter-app declarations of a device, and the system's data.
package struct InterAppModel: Sendable {
  package let tree: TypeTree
  package let schemes: SystemSchemes
  package let catalog: AppCatalog
  /// The version of the device's system, or nil if it is unknown, which counts as the newest.
  package let version: SystemVersion?

  /// Creates a model of a device.
  package init(
    _ catalog: AppCatalog, types: TypeTable, schemes: SystemSchemes, version: SystemVersion?
  ) {
    self.catalog = catalog
    self.schemes = schemes
    self.version = version
    tree = TypeTree(system: types, apps: catalog.types)
  }

  /// The findings about the declarations of all apps, sorted by app and position.
  package var findings: [DeclarationFinding] {
    let all =
      catalog.apps.flatMap { $0.findings + undeclared(by: $0) } + tree.findings
      + URLTypeLint.findings(catalog.apps, schemes, on: version)
    return all.sorted { ($0.app, $0.key, $0.reason) < ($1.app, $1.key, $1.reason) }
  }

  /// Finds document types with a type that neither an app nor the system declares, so that no file
  /// has it.
  private func undeclared(by app: AppDeclarations) -> [DeclarationFinding] {
    app.documentTypes.flatMap { document in
      document.contentTypes.filter { tree.declaration(of: $0) == nil }.map { type in
        DeclarationFinding(
          .note, of: app.app, at: "\(document.key).LSItemContentTypes",
          reason: "the type '\(type)' is declared neither by the system nor by an app of the device"
        )
      }
    }
  }
}
