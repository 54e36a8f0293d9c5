-- What the attribution service stores itself, and how its commands run.
CREATE TABLE attribution (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text NOT NULL,
    click text NOT NULL,  -- not unique: that there is one row per click is what the story shows
    campaign text NOT NULL,
    fee integer NOT NULL  -- cents
);

SELECT idem_define('click.attribute', lease => '100 ms', keep_request => true,
                   steps => '{row,object,bill}');
