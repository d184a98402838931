package import SystemIO

/// The apps of a source that `AppPairing.all()` found.
package struct PairedApps: Sendable {
  /// The routes, in the order of their identifiers.
  package var routes: [MigrationRoute] = []
  /// The apps without a route, each with the reason.
  package var without: [PathRemark] = []
  /// The data in the source's home directory that no table and no installed app names, with its
  /// size.
  package var unnamed: [MigrationPlan.Group] = []
  /// The unlistable directories in the source's home directory in which apps were to be searched,
  /// each with the reason.
  package var unreadable: [PathRemark] = []

  /// Creates an empty result.
  package init() {}
}
