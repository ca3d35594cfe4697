//! Carts: the products that a user wants to buy.

use crate::ids::{CartId, ProductId, UserId};

keys::entity! {
    /// A product in a user's cart.
    ground CartItem "E-29" {
        key CartItemKey("USER#{UserId}#CART#{CartId}", "ITEM#{ProductId}") {
            /// The owner of the cart.
            user_id: UserId = "UserId",
            /// The cart.
            cart_id: CartId = "CartId",
            /// The product.
            product_id: ProductId = "ProductId",
        }
        index "GSI1" ("USER#{UserId}", "CART#{CartId}#ITEM#{ProductId}");
        attributes {
            /// Number of pieces.
            quantity: Option<i64> = "Quantity",
            /// When it was put in, ISO 8601 UTC in milliseconds.
            created_at: Option<String> = "CreatedAt",
            /// When the item was last written, ISO 8601 UTC in milliseconds.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {}
    }
}
