internal import ArgumentParser
internal import PolicyEngine

/// The bundles that a backup stores.
struct BundleOptions: ParsableArguments {
  @Flag(help: "Store bundles even in a bucket (default: only in other repositories).")
  var withBundles = false

  /// Returns the destination by which the policy decides about a backup, given that of the
  /// repository.
  func deciding(for destination: Destination) -> Destination {
    withBundles ? destination.withBundles : destination
  }
}
